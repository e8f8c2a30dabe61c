"""`kav tune`: a search over what a preset leaves open, into a folder of runs."""

import dataclasses
import shlex
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Annotated
from typing import Any

import typer

from keras_attnvariants.cli.catalogue import CorpusOptions
from keras_attnvariants.cli.commands import command
from keras_attnvariants.cli.options import Imports
from keras_attnvariants.cli.options import check_output_folder
from keras_attnvariants.cli.options import given
from keras_attnvariants.cli.options import import_modules
from keras_attnvariants.cli.train_options import Patience
from keras_attnvariants.cli.train_options import PrecisionOption
from keras_attnvariants.cli.train_options import SizeOptions
from keras_attnvariants.cli.train_options import TrainingPrecision
from keras_attnvariants.cli.train_options import UpdateOptions
from keras_attnvariants.cli.train_options import VocabularySize
from keras_attnvariants.cli.tune_options import BleuSentences
from keras_attnvariants.cli.tune_options import BudgetOptions
from keras_attnvariants.cli.tune_options import Csv
from keras_attnvariants.cli.tune_options import Method
from keras_attnvariants.cli.tune_options import Objective
from keras_attnvariants.cli.tune_options import ParallelOptions
from keras_attnvariants.cli.tune_options import Search
from keras_attnvariants.cli.tune_options import Seed
from keras_attnvariants.cli.tune_options import Seeds
from keras_attnvariants.cli.tune_options import Trials

if TYPE_CHECKING:
    from keras_attnvariants.data import Corpus
    from keras_attnvariants.presets import Preset
    from keras_attnvariants.tuning import SearchSpace

PRESET = "kav/hc-sa/multi30k"


@dataclass(frozen=True, kw_only=True)
class Subject:
    """The space that is searched, or the baseline whose hybrids are.

    Raises:
        ValueError: neither a space nor a baseline is given, or both, or an option
            lacks the baseline.
        FileNotFoundError: the baseline is no run.
    """

    space: Annotated[
        str | None,
        typer.Option(
            help="What varies: a TOML file, or a name (you2020/offsets, "
            "you2020/all-offsets, loem2022/layer-hybrids, attention, "
            "attention-per-layer, training).",
            show_default=False,
        ),
    ] = None
    from_locality: Annotated[
        Path | None,
        typer.Option(
            help="In the place of a space, the folder of a trained baseline: layers "
            "whose heads look near get cheaper attention. Ends with whether that is as "
            "good.",
            show_default=False,
        ),
    ] = None
    distance: Annotated[
        int | None,
        typer.Option(
            help="What counts as near, in tokens (2).", min=1, show_default=False
        ),
    ] = None
    nearness: Annotated[
        float | None,
        typer.Option(
            help="How near a layer must look to get it: from 0, even weights, to 1, "
            "nothing beyond the distance (0.25).",
            min=0,
            max=1,
            show_default=False,
        ),
    ] = None
    preset: Annotated[
        str | None,
        typer.Option(
            help="What is trained where the space says nothing else; default: "
            "kav/hc-sa/multi30k. Not with a baseline, which has its own.",
            show_default=False,
        ),
    ] = None

    def __post_init__(self) -> None:
        if (self.space is None) == (self.from_locality is None):
            count = "neither" if self.space is None else "both"
            raise ValueError(
                f"Give either --space or --from-locality. Received: {count}"
            )
        run = self.from_locality
        if run is None and (self.distance, self.nearness) != (None, None):
            raise ValueError("--distance and --nearness need --from-locality.")
        if run is not None and not (run / "log.jsonl").is_file():
            raise FileNotFoundError(
                "`--from-locality` must be the folder of a run, with log.jsonl. "
                f"Received: {run}"
            )

    def check(self, sizes: dict[str, Any]) -> None:
        """Raises if a baseline is given, and what it decides by itself.

        Raises:
            ValueError: it is.
        """
        if self.from_locality is not None and (self.preset or sizes):
            raise ValueError(
                "--from-locality has the preset and the sizes of its run: leave out "
                f"--preset and sizes. Received: {self.preset or sizes}"
            )

    def explore(
        self, corpus: "Corpus", sizes: dict[str, Any]
    ) -> tuple["Preset", "SearchSpace"]:
        """The preset and its space; for a baseline, the proposal is printed.

        Args:
            corpus: what a baseline is to translate.
            sizes: options of the preset that were given.

        Raises:
            ValueError: something is unknown or does not fit, or no head looks near.
            OSError: a file cannot be read.
        """
        from keras_attnvariants import presets

        if self.from_locality is not None:
            return self._propose(self.from_locality, corpus)
        preset = with_sizes(presets.get(self.preset or PRESET), sizes)
        return preset, load_space(str(self.space), preset)

    def _propose(self, run: Path, corpus: "Corpus") -> tuple["Preset", "SearchSpace"]:
        from rich.console import Console

        from keras_attnvariants.tuning import propose_hybrids

        bounds = given(distance=self.distance, nearness=self.nearness)
        proposal = propose_hybrids(run, corpus, **bounds)
        Console().print(proposal)
        if len(proposal.hybrids) == 1:
            raise ValueError(
                "No layer looks near enough to be replaced: nothing to train, or try "
                f"a larger --distance or a smaller --nearness. Received: {run}"
            )
        typer.echo(f"To be trained: {', '.join(proposal.hybrids)}.")
        return proposal.preset, proposal.space


def with_sizes(preset: Any, sizes: dict[str, Any]) -> Any:
    """A preset with other sizes, which its search spaces are made for.

    Raises:
        ValueError: the preset has no such size.
    """
    if unknown := sorted(sizes.keys() - preset.options.keys()):
        raise ValueError(
            f"{preset.name} has no {', '.join(unknown)}, only "
            f"{', '.join(preset.options)}. Received: {sizes}"
        )
    return dataclasses.replace(preset, options={**preset.options, **sizes})


def load_space(spec: str, preset: Any) -> Any:
    """A search space from a TOML file, or by its name.

    Raises:
        ValueError: the file is no TOML or describes no space, or the name is unknown.
        OSError: the file cannot be read.
    """
    from keras_attnvariants.tuning import SearchSpace
    from keras_attnvariants.tuning import named_space

    path = Path(spec)
    if path.suffix != ".toml":
        return named_space(spec, preset)
    try:
        values = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is no TOML: {error}") from error
    return SearchSpace.from_dict(values)


@command
def tune(
    *,
    corpus: CorpusOptions,
    search: Search,
    subject: Subject,
    method: Method = Method.RANDOM,
    objective: Objective = Objective.LOSS,
    trials: Trials = None,
    budget: BudgetOptions,
    seeds: Seeds = 1,
    seed: Seed = 1,
    vocabulary_size: VocabularySize = None,
    sizes: SizeOptions,
    training: UpdateOptions,
    patience: Patience = None,
    bleu_sentences: BleuSentences = None,
    precision: PrecisionOption = TrainingPrecision.AUTO,
    csv: Csv = None,
    parallel: ParallelOptions,
    imports: Imports = None,
) -> None:
    """Search for the best attention, sizes or training of a preset on a corpus.

    Every trial is a run in a folder of its own, with the same budget. After an
    interruption, the same command continues where it stopped. Ends with a table of all
    trials, in which * is the front of quality against number of parameters.

    [bold]Example:[/bold] kav tune --data multi30k --source en --target de
    --search runs/offsets --space you2020/offsets --updates 6000
    """
    check_output_folder("--search", search)
    if bleu_sentences is not None and objective != Objective.BLEU:
        raise ValueError("--bleu-sentences needs --objective bleu.")
    if csv is not None and parallel.worker is not None:
        raise ValueError("--csv is for the chief: a worker has no table.")
    model = given(vocabulary_size=vocabulary_size) | sizes.given()
    subject.check(model)
    import_modules(imports)
    import keras_attnvariants as kav

    limit = budget.budget()
    loaded = corpus.load()
    preset, space = subject.explore(loaded, model)
    prepared = kav.tuning.search(
        preset,
        loaded,
        space.with_training(**training.of_updates()),
        search,
        budget=limit,
        objective=objective.value,
        method=method.value,
        max_trials=trials,
        seeds=range(1, seeds + 1),
        seed=seed,
        settings=given(patience=patience),
        precision=precision.value,
        **given(bleu_sentences=bleu_sentences),
    )
    if parallel.worker is not None:
        return prepared.join(str(parallel.chief), parallel.worker)
    workers = 1 if parallel.workers is None else parallel.workers
    result = prepared.run(workers, parallel.chief)
    show(result, csv, is_proposal=subject.from_locality is not None)


def show(result: Any, csv: Path | None, is_proposal: bool) -> None:
    """Print all trials, the judgement on a proposal, and the next command.

    Raises:
        ValueError: no trial has ended well, or none of a proposal's hybrids.
    """
    from rich.console import Console

    for trial, error in result.failed.items():
        typer.echo(f"Trial {trial} failed: {error}")
    if not result.records:
        raise ValueError("No trial has ended well")
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
