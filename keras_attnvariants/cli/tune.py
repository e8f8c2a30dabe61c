"""`kav tune`: searches over parts of a preset, in a folder of runs."""

import dataclasses
import shlex
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any
from typing import ClassVar
from typing import Literal

import typer

from keras_attnvariants.cli.catalogue import CorpusOptions
from keras_attnvariants.cli.commands import command
from keras_attnvariants.cli.commands import given
from keras_attnvariants.cli.commands import option
from keras_attnvariants.cli.models import RUN
from keras_attnvariants.cli.models import check_place
from keras_attnvariants.cli.models import model_folder
from keras_attnvariants.cli.models import model_task
from keras_attnvariants.cli.options import FROM_MODEL
from keras_attnvariants.cli.options import IMPORTS
from keras_attnvariants.cli.options import SizeOptions
from keras_attnvariants.cli.options import UpdateOptions
from keras_attnvariants.cli.options import check_output_folder
from keras_attnvariants.cli.options import import_modules
from keras_attnvariants.utils.checks import check_known

if TYPE_CHECKING:
    from keras_attnvariants.data import Corpus
    from keras_attnvariants.presets import Preset
    from keras_attnvariants.tuning import SearchSpace

PRESET = "kav/hc-sa/multi30k"


@dataclass(frozen=True, kw_only=True)
class Subject:
    """The space to search, or the baseline whose hybrids to search.

    Raises:
        ValueError: not exactly one of the two is given, or an option needs the
            baseline.
        FileNotFoundError: the baseline is not a run.
    """

    space: str | None = option(
        "What varies: a TOML file, or a name (you2020/offsets, loem2022/layer-hybrids)."
    )
    from_locality: Path | None = option(
        "Instead of a space, the folder of a trained baseline: layers whose heads look "
        "near get cheaper attention. At the end, kav says whether that is as good."
    )
    distance: int | None = option(
        "Largest distance that is near, in tokens (2).", min=1
    )
    nearness: float | None = option(
        "How near a layer must look to get it: from 0, even weights, to 1, nothing "
        "beyond the distance (0.25).",
        min=0,
        max=1,
    )
    preset: str | None = option(
        "The model, for which the space says what varies; default: "
        f"{PRESET}, or that of the model with --from. Not with a baseline, which has "
        "its own."
    )
    from_model: str | None = FROM_MODEL

    def __post_init__(self) -> None:
        run = self.from_locality
        if (self.space is None) == (run is None):
            count = "neither" if run is None else "both"
            raise ValueError(
                f"Give either --space or --from-locality. Received: {count}"
            )
        if run is not None:
            check_place("--from-locality", run, RUN)
        elif (self.distance, self.nearness) != (None, None):
            raise ValueError("--distance and --nearness need --from-locality.")
        if self.from_model is not None:
            model_folder("--from", self.from_model)

    def check_sizes(self, sizes: dict[str, Any]) -> None:
        """Checks that no preset is given with a baseline, and no sizes with a model.

        Raises:
            ValueError: one is; a baseline or a model has its own.
        """
        if self.from_locality is not None and (self.preset or sizes):
            raise ValueError(
                "--from-locality has the preset and the sizes of its run: leave out "
                f"--preset and sizes. Received: {self.preset or sizes}"
            )
        if self.from_model is not None and sizes:
            raise ValueError(
                "--from has the sizes and the vocabulary of its model: leave sizes "
                f"out. Received: {sizes}"
            )

    def explore(
        self, preset: "Preset", corpus: "Corpus", sizes: dict[str, Any]
    ) -> tuple["Preset", "SearchSpace"]:
        """The preset and its space; for a baseline, the proposal is printed.

        Args:
            preset: the preset, unless there is a baseline.
            corpus: corpus to measure a baseline on.
            sizes: given options of the preset.

        Raises:
            ValueError: something is unknown or does not fit, or no head looks near.
            OSError: a file cannot be read.
        """
        from keras_attnvariants.training.fine_tuning import fine_tuning_from
        from keras_attnvariants.tuning import SearchSpace
        from keras_attnvariants.tuning import named_space

        if self.from_locality is not None:
            return self._propose(self.from_locality, corpus)
        for name in sizes:
            check_known(preset.name, name, preset.options)
        # Search spaces are made for these sizes.
        preset = dataclasses.replace(preset, options={**preset.options, **sizes})
        if (start := fine_tuning_from(self.from_model)) is not None:
            preset = start.fitted(preset)
        path = Path(str(self.space))
        if path.suffix != ".toml":
            return preset, named_space(str(path), preset)
        try:
            values = tomllib.loads(path.read_text("utf-8"))
        except ValueError as error:
            raise ValueError(f"{path} is not a TOML file: {error}") from error
        return preset, SearchSpace.from_dict(values)

    def preset_name(self, task: str | None) -> str:
        """The given preset, else that of the model, else one for a task."""
        from keras_attnvariants.data import tasks
        from keras_attnvariants.training.fine_tuning import preset_of

        if self.preset is None and self.from_model is not None:
            if name := preset_of(self.from_model):
                return name
            raise ValueError(
                f"This model has no preset: give --preset. Received: {self.from_model}"
            )
        return self.preset or (PRESET if task is None else tasks.get(task).preset)

    def task(self) -> str | None:
        """The task of a baseline or a model, if any."""
        if self.from_locality is not None:
            return model_task(self.from_locality)
        if self.from_model is not None:
            return model_task(model_folder("--from", self.from_model))
        return None

    def _propose(self, run: Path, corpus: "Corpus") -> tuple["Preset", "SearchSpace"]:
        from rich.console import Console

        from keras_attnvariants.tuning import propose_hybrids

        bounds = given(self, "space", "from_locality", "preset", "from_model")
        proposal = propose_hybrids(run, corpus, **bounds)
        Console().print(proposal)
        if len(proposal.hybrids) == 1:
            raise ValueError(
                "No layer looks near enough to be replaced. Try a larger --distance or "
                f"a smaller --nearness. Received: {run}"
            )
        typer.echo(f"To be trained: {', '.join(proposal.hybrids)}.")
        return proposal.preset, proposal.space


@dataclass(frozen=True, kw_only=True)
class BudgetOptions:
    """The budget of every trial."""

    PANEL: ClassVar[str] = "Budget of every trial (one of the first three)"

    updates: int | None = option("Updates.", min=1)
    minutes: float | None = option("Minutes for updates and validations.", min=0.01)
    tokens: int | None = option(
        "Source and target positions of all updates together.", min=1
    )
    validations: int = option("Validations of a trial.", 9, min=1)


@dataclass(frozen=True, kw_only=True)
class TrialOptions:
    """The trials of a search.

    Raises:
        ValueError: an option lacks another.
    """

    method: Literal["random", "bayesian"] = option(
        "Choice of the points of a space.", "random"
    )
    objective: Literal["loss", "bleu", "rouge1", "wer"] = option(
        "Score of a trial, on the validation split: loss, or bleu, of summaries "
        "rouge1, of speech wer.",
        "loss",
    )
    max_trials: int | None = option(
        "Number of trials; by default all points of a space of up to 20, else 20.",
        None,
        "--trials",
        min=1,
    )
    seeds: int = option("Runs of each trial; its score is their mean.", 1, min=1)
    seed: int = option("Seed of the points that are tried.", 1, min=1, max=2**31)
    score_sentences: int | None = option(
        "Validation sources to decode, if --objective is not loss (200).",
        min=1,
    )

    def __post_init__(self) -> None:
        if self.score_sentences is not None and self.objective == "loss":
            raise ValueError("--score-sentences needs another --objective than loss.")


@command
def tune(
    *,
    corpus: CorpusOptions,
    search: Path = option(
        "Folder of the search. If it holds the same search already, that is continued.",
        ...,
    ),
    subject: Subject,
    trials: TrialOptions,
    budget: BudgetOptions,
    sizes: SizeOptions,
    training: UpdateOptions,
    csv: Path | None = option("File for the table of all trials."),
    workers: int = option(
        "Processes on this machine that train trials, and share its cores.", 1, min=1
    ),
    imports: list[str] | None = IMPORTS,
) -> None:
    """Search for the best attention, sizes or training of a preset on a corpus.

    Every trial is a run in a folder of its own, with the same budget. After an
    interruption, the same command continues where it stopped. Several such commands,
    also on machines that share the folder, share the trials. At the end comes a table
    of all trials, in which * marks the Pareto front of quality and parameters.

    [bold]Example:[/bold] kav tune --data multi30k --source en --target de
    --search runs/offsets --space you2020/offsets --updates 6000
    """
    check_output_folder("--search", search)
    model = given(sizes)
    subject.check_sizes(model)
    import_modules(imports)
    import keras_attnvariants as kav

    limit = kav.tuning.Budget(**vars(budget))
    preset = kav.presets.get(subject.preset_name(corpus.task))
    task = corpus.task or subject.task() or preset.task
    if subject.from_locality is None:
        kav.data.tasks.get(task).check(preset, preset.name)
    loaded = corpus.load(task)
    preset, space = subject.explore(preset, loaded, model)
    prepared = kav.tuning.search(
        preset,
        loaded,
        space.with_training(**given(training, "patience", "precision")),
        search,
        budget=limit,
        settings={} if training.patience is None else {"patience": training.patience},
        precision=training.precision,
        continue_from=subject.from_model,
        imports=imports or (),
        **given(trials) | {"seeds": range(1, trials.seeds + 1)},
    )
    show(prepared.run(workers), csv, is_proposal=subject.from_locality is not None)


def show(result: Any, csv: Path | None, is_proposal: bool) -> None:
    """Prints all trials, the judgement on a proposal, and the next command.

    Raises:
        ValueError: no trial, or no hybrid of a proposal, has succeeded.
    """
    from rich.console import Console

    for trial, error in result.failed.items():
        typer.echo(f"Trial {trial} failed: {error}")
    if not result.records:
        raise ValueError("No trial has succeeded")
    Console().print(result)
    if csv is not None:
        result.to_csv(csv)
    if is_proposal:
        from keras_attnvariants.tuning import judge

        judgement = judge(result)
        Console().print(judgement)
        typer.echo(judgement.sentence)
    folder = shlex.quote(str(result.run_folder()))
    typer.echo(f"Next: kav evaluate --model {folder} …")
