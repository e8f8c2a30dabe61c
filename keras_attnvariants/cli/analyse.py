"""`kav analyse` and `kav attention`: tables and pictures of what models attend to."""

import re
from collections.abc import Callable
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any
from typing import Literal

import typer

from keras_attnvariants.cli.commands import argument
from keras_attnvariants.cli.commands import command
from keras_attnvariants.cli.commands import option
from keras_attnvariants.cli.models import load
from keras_attnvariants.cli.models import model_folder
from keras_attnvariants.cli.models import same_task
from keras_attnvariants.cli.models import short_names
from keras_attnvariants.cli.models import translator_of
from keras_attnvariants.cli.options import IMPORTS
from keras_attnvariants.cli.options import MODEL_OR_DEFAULT
from keras_attnvariants.cli.options import check_output_file
from keras_attnvariants.cli.options import check_output_folder
from keras_attnvariants.cli.options import import_modules
from keras_attnvariants.cli.texts import with_progress
from keras_attnvariants.utils.machine import check_extra

if TYPE_CHECKING:
    import keras

    from keras_attnvariants import Tokenizer
    from keras_attnvariants.analysis import Table
    from keras_attnvariants.data.tasks import Task

# Model and tokenizer by name of the system.
Systems = dict[str, tuple["keras.Model", "Tokenizer"]]
# Reads the data from the start.
Read = Callable[[], Iterator[Any]]

Analysis = Literal[
    "locality",
    "distance",
    "entropy",
    "off-diagonality",
    "activation-shares",
    "heat-maps",
    "alignment-errors",
    "contrastive",
    "agreement",
    "bleu-by-length",
    "bleu-by-off-diagonality",
]
CONTRASTIVE = ("contrastive", "agreement")
OF_TEXTS = (*CONTRASTIVE, "alignment-errors")


@dataclass(frozen=True, kw_only=True)
class DataOptions:
    """The data to analyse."""

    data: str = option(
        "A corpus, as for `kav train`; for alignment-errors a folder with test.align "
        "too; for contrastive and agreement a folder with <category>.src.en, "
        "<category>.correct.de, <category>.incorrect.de, … or the JSON of LingEval97.",
        ...,
    )
    source: str | None = option(
        "Language to translate from; not for contrastive pairs, summaries and speech."
    )
    target: str | None = option("Language to translate into; as --source.")
    split: str | None = option(
        "Part of the corpus to analyse (test); not for contrastive pairs."
    )

    def check(self, analysis: Analysis, task: "Task") -> None:
        """Checks that an analysis has its options and supports a task.

        Raises:
            ValueError: an option is missing, or the task is not supported.
        """
        fits = "bleu" in task.metrics or not analysis.startswith("bleu")
        if not fits or not (task.reads_text or analysis not in OF_TEXTS):
            raise ValueError(
                f"--analysis {analysis} does not support models for {task.name}."
            )
        if analysis in CONTRASTIVE:
            if self.source or self.target or self.split:
                raise ValueError(
                    f"--analysis {analysis} has no --source, --target and --split: its "
                    "files name the languages."
                )
        elif task.languages is None and None in (self.source, self.target):
            raise ValueError(f"--analysis {analysis} needs --source and --target.")

    def reader(self, analysis: Analysis, task: "Task") -> Read:
        """A function that reads the data that an analysis needs.

        Raises:
            ValueError, OSError: there is no such data.
        """
        import keras_attnvariants as kav

        split = self.split or "test"
        if analysis in CONTRASTIVE:
            read: Read = partial(kav.analysis.read_contrastive, self.data)
        else:
            languages = task.sides(self.source, self.target)
            if analysis == "alignment-errors":
                place = self.data, *languages, split
                read = partial(kav.analysis.read_alignments, *place)
            else:
                corpus = kav.data.load_corpus(self.data, *languages, task=task.name)
                read = partial(kav.analysis.read_pairs, corpus, split)
        next(read(), None)
        return read


@command
def analyse(
    *,
    runs: list[str] = argument(
        "Folders of runs or models, or names of models; BLEU compares the others with "
        "the first. Files are named after the last parts of these, unless those are "
        "equal."
    ),
    analysis: Analysis = option("The analysis.", ...),
    data: DataOptions,
    sentences: int | None = option(
        "Only that many sentences or pairs, from the start.", min=1
    ),
    output: Path = option(
        "Folder for tables (.csv) and pictures (.png).", Path("analysis")
    ),
    imports: list[str] | None = IMPORTS,
) -> None:
    """Look inside models: a table and a picture of each, or one that compares them.

    [bold]Example:[/bold] kav analyse runs/base --analysis locality --data multi30k
    --source en --target de --split test2016
    """
    folders = short_names(runs)
    task = same_task(folders)
    data.check(analysis, task)
    check_extra("A picture", "plot", ("matplotlib",))
    if len({file_name(name) for name in folders}) < len(folders):
        raise ValueError(
            "The names of the systems must differ in letters or digits, since files "
            f"are named after them. Received: {', '.join(folders)}"
        )
    check_output_folder("--output", output)
    import_modules(imports)
    from rich.console import Console

    read = data.reader(analysis, task)
    systems = {name: load(folder) for name, folder in folders.items()}
    output.mkdir(parents=True, exist_ok=True)
    console = Console(highlight=False)
    for name, table in tables(analysis, systems, lambda: islice(read(), sentences)):
        console.print(table)
        for write, suffix in ((table.to_csv, ".csv"), (table.plot, ".png")):
            path = output / (file_name(name) + suffix)
            write(path)
            typer.echo(path)


def file_name(name: str) -> str:
    """The file name for the name of a system."""
    return re.sub(r"[^\w.]+", "-", name).strip("-.")


def tables(
    analysis: Analysis, systems: Systems, read: Read
) -> Iterator[tuple[str, "Table"]]:
    """The results with their file names: one for all systems, or one for each."""
    import keras_attnvariants as kav

    table_of = kav.analysis.ANALYSES[analysis].function
    if analysis not in kav.analysis.COMPARISONS:
        for name, system in systems.items():
            yield f"{name}.{analysis}", table_of(*system, read())
        return
    translate = {}
    for name, system in systems.items():
        translate[name] = with_progress(translator_of(*system).translate, name)
    first = next(iter(systems.values()))
    yield analysis, table_of(*first, translate, read())


@command
def attention(
    source: str = argument("The source: a text, or the path of a recording."),
    model: str = MODEL_OR_DEFAULT,
    translation: str | None = option(
        "Its translation, summary or transcript; default: that of the model."
    ),
    layer: int | None = option(
        "Number of the layer, from 1 at the bottom; default: the highest that has "
        "weights.",
        min=1,
    ),
    output: Path = option("The picture, a .png file.", Path("attention.png")),
    imports: list[str] | None = IMPORTS,
) -> None:
    """Draw the attention weights of one layer on a sentence, document or recording.

    A translation gets a panel for each head. Each row shows what one token attends to;
    in cross-attention, it is labelled with the token that is predicted. A document is
    shaded by the cross-attention of its summary. The cross-attention of a transcript is
    drawn below the spectrogram. Both are means over heads.

    [bold]Example:[/bold] kav attention 'A man rides a horse.'
    """
    check_extra("A picture", "plot", ("matplotlib",))
    folder = model_folder("--model", model)
    if output.suffix != ".png":
        raise ValueError(f"--output must end in .png. Received: {output}")
    check_output_file(output)
    for text in (source, translation):
        if text is not None and not text.strip():
            raise ValueError(f"A text must not be empty. Received: {text!r}")
    import_modules(imports)
    loaded, tokenizer = load(folder)
    from keras_attnvariants.data.tasks import task_of
    from keras_attnvariants.evaluation.attention_maps import AttentionExample
    from keras_attnvariants.evaluation.attention_maps import save
    from keras_attnvariants.evaluation.attention_pictures import PICTURES

    if translation is None:
        [translation] = translator_of(loaded, tokenizer).translate([source])
    example = AttentionExample(loaded, tokenizer, source, translation)
    save(PICTURES[task_of(loaded).picture](example, layer), output)
    typer.echo(f"{translation}\n{output}")
