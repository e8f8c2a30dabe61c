"""`kav analyse` and `kav attention`: tables and pictures of what models attend to."""

from collections.abc import Callable
from collections.abc import Iterator
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Annotated
from typing import Any

import typer

from keras_attnvariants.cli.commands import command
from keras_attnvariants.cli.models import batch_sizes
from keras_attnvariants.cli.models import check_folders
from keras_attnvariants.cli.models import load
from keras_attnvariants.cli.options import Imports
from keras_attnvariants.cli.options import RequiredModel
from keras_attnvariants.cli.options import check_matplotlib
from keras_attnvariants.cli.options import check_output_file
from keras_attnvariants.cli.options import check_output_folder
from keras_attnvariants.cli.options import import_modules
from keras_attnvariants.cli.texts import with_progress

if TYPE_CHECKING:
    import keras

    from keras_attnvariants import Tokenizer
    from keras_attnvariants.analysis import Table

# Model and tokenizer by name of the system.
Systems = dict[str, tuple["keras.Model", "Tokenizer"]]
# Begins to read the data anew.
Read = Callable[[], Iterator[Any]]


class Analysis(StrEnum):
    """What can be analysed."""

    LOCALITY = "locality"
    DISTANCE = "distance"
    ENTROPY = "entropy"
    OFF_DIAGONALITY = "off-diagonality"
    SHARES = "activation-shares"
    HEAT_MAPS = "heat-maps"
    ALIGNMENT_ERRORS = "alignment-errors"
    CONTRASTIVE = "contrastive"
    AGREEMENT = "agreement"
    BLEU_BY_LENGTH = "bleu-by-length"
    BLEU_BY_OFF_DIAGONALITY = "bleu-by-off-diagonality"


CONTRASTIVE = (Analysis.CONTRASTIVE, Analysis.AGREEMENT)
# Those that read no corpus.
WITHOUT_CORPUS = (*CONTRASTIVE, Analysis.ALIGNMENT_ERRORS)
COMPARISONS = (Analysis.BLEU_BY_LENGTH, Analysis.BLEU_BY_OFF_DIAGONALITY)

Runs = Annotated[
    list[Path],
    typer.Argument(
        help="Folders of runs or models; BLEU compares the others with the first."
    ),
]
Name = Annotated[Analysis, typer.Option("--analysis", help="Which analysis.")]
Data = Annotated[
    str,
    typer.Option(
        help="A corpus, as for `kav train`; for alignment-errors a folder with "
        "test.align too; for contrastive and agreement a folder with "
        "<category>.src.en, <category>.correct.de, <category>.incorrect.de, … or the "
        "JSON of LingEval97."
    ),
]
Source = Annotated[
    str | None,
    typer.Option(help="Language to translate from; not for contrastive pairs."),
]
Target = Annotated[
    str | None,
    typer.Option(help="Language to translate into; not for contrastive pairs."),
]
Split = Annotated[
    str | None,
    typer.Option(help="Which part of the corpus (test); not for contrastive pairs."),
]
MaxInvalid = Annotated[
    float | None,
    typer.Option(
        help="Largest share of the lines of a file that may be invalid UTF-8 (0.01); "
        "not for contrastive pairs and alignment-errors.",
        min=0,
        max=1,
    ),
]
Sentences = Annotated[
    int | None,
    typer.Option(help="Only that many sentences or pairs, from the start.", min=1),
]
Output = Annotated[
    Path, typer.Option(help="Folder for tables (.csv) and pictures (.png).")
]


@command
def analyse(
    runs: Runs,
    analysis: Name,
    data: Data,
    source: Source = None,
    target: Target = None,
    split: Split = None,
    sentences: Sentences = None,
    max_invalid: MaxInvalid = None,
    output: Output = Path("analysis"),
    imports: Imports = None,
) -> None:
    """Look inside models: a table and a picture of each, or one that compares them.

    [bold]Example:[/bold] kav analyse runs/base --analysis locality --data multi30k
    --source en --target de --split test2016
    """
    if analysis in CONTRASTIVE and (source or target or split):
        raise ValueError(
            f"--analysis {analysis} has no --source, --target and --split: its files "
            "name the languages."
        )
    if analysis in WITHOUT_CORPUS and max_invalid is not None:
        raise ValueError(
            f"--analysis {analysis} has no --max-invalid: it reads no corpus. "
            f"Received: {max_invalid}"
        )
    check_matplotlib()
    folders = named(runs)
    check_output_folder("--output", output)
    import_modules(imports)
    from rich.console import Console

    read = reader(analysis, data, source, target, split or "test", max_invalid)
    systems = {name: load(folder) for name, folder in folders.items()}
    output.mkdir(parents=True, exist_ok=True)
    console = Console(highlight=False)
    for name, table in tables(analysis, systems, lambda: islice(read(), sentences)):
        console.print(table)
        for write, suffix in ((table.to_csv, ".csv"), (table.plot, ".png")):
            path = output / (name + suffix)
            write(path)
            typer.echo(path)


def named(runs: list[Path]) -> dict[str, Path]:
    """The folders by their names.

    Raises:
        ValueError: two have the same name.
        FileNotFoundError: one is neither of a run nor of a model.
    """
    folders: dict[str, Path] = {}
    for run in runs:
        check_folders(run, None)
        name = run.resolve().name
        if name in folders:
            raise ValueError(
                "The folders must have different names, which their files begin with. "
                f"Received: {folders[name]} and {run}"
            )
        folders[name] = run
    return folders


def reader(
    analysis: Analysis,
    data: str,
    source: str | None,
    target: str | None,
    split: str,
    max_invalid: float | None,
) -> Read:
    """What reads the data that an analysis needs.

    Raises:
        ValueError, OSError: there is no such data.
    """
    import keras_attnvariants as kav

    if analysis in CONTRASTIVE:
        next(kav.analysis.read_contrastive(data), None)
        return lambda: kav.analysis.read_contrastive(data)
    if source is None or target is None:
        raise ValueError(f"--analysis {analysis} needs --source and --target.")
    if analysis == Analysis.ALIGNMENT_ERRORS:
        options = (data, source, target, split)
        next(kav.analysis.read_alignments(*options), None)
        return lambda: kav.analysis.read_alignments(*options)
    share = 0.01 if max_invalid is None else max_invalid
    corpus = kav.data.load_corpus(data, source, target, max_invalid=share)
    corpus.files(split)
    return lambda: kav.analysis.read_pairs(corpus, split)


def tables(
    analysis: Analysis, systems: Systems, read: Read
) -> Iterator[tuple[str, "Table"]]:
    """The results, with names for their files: one of all systems, or one of each."""
    from keras_attnvariants.analysis.named import ANALYSES

    if analysis in COMPARISONS:
        yield analysis, comparison(analysis, systems, read)
        return
    for name, (model, tokenizer) in systems.items():
        yield (
            f"{name}.{analysis}",
            ANALYSES[analysis].function(model, tokenizer, read()),
        )


def comparison(analysis: Analysis, systems: Systems, read: Read) -> "Table":
    """The translations of all systems, by bins of sentences."""
    import keras_attnvariants as kav

    translate = {}
    for name, (model, tokenizer) in systems.items():
        beam_size = kav.models.SearchSettings.of(model).beam_size
        translator = kav.Translator(
            model, tokenizer, batch_sizes=batch_sizes(beam_size), xla=False
        )
        translate[name] = with_progress(translator.translate, name)
    if analysis == Analysis.BLEU_BY_LENGTH:
        return kav.analysis.bleu_by_length(translate, read())
    model, tokenizer = next(iter(systems.values()))
    return kav.analysis.bleu_by_off_diagonality(model, tokenizer, translate, read())


Sentence = Annotated[str, typer.Argument(help="The sentence to read.")]
Translation = Annotated[
    str | None,
    typer.Option(help="A translation of the sentence; default: that of the model."),
]
Layer = Annotated[
    int | None,
    typer.Option(
        help="Number of the layer, from 1 at the bottom; default: the highest that has "
        "weights.",
        min=1,
    ),
]
Picture = Annotated[Path, typer.Option(help="The picture, a .png file.")]


@command
def attention(
    sentence: Sentence,
    model: RequiredModel,
    translation: Translation = None,
    layer: Layer = None,
    output: Picture = Path("attention.png"),
    imports: Imports = None,
) -> None:
    """Draw the attention weights of one layer, all heads, on a sentence.

    A row of a panel is what one token attends to: of the sentence, of the translation
    so far, and, in cross-attention, the token that is predicted next.

    [bold]Example:[/bold] kav attention 'A man rides a horse.' --model runs/multi30k
    """
    check_matplotlib()
    check_folders(model, None)
    if output.suffix != ".png":
        raise ValueError(f"--output must end in .png. Received: {output}")
    check_output_file(output)
    for text in (sentence, translation):
        if text is not None and not text.strip():
            raise ValueError(f"A sentence must not be empty. Received: {text!r}")
    import_modules(imports)
    loaded, tokenizer = load(model)
    import keras_attnvariants as kav
    from keras_attnvariants.evaluation.attention_maps import Reading
    from keras_attnvariants.evaluation.attention_maps import draw_rows

    if translation is None:
        search = kav.models.SearchSettings.of(loaded)
        translator = kav.Translator(
            loaded, tokenizer, search.beam_size, search.length_penalty, xla=False
        )
        [translation] = translator.translate([sentence])
    rows = Reading(loaded, tokenizer, sentence, translation).rows(layer)
    draw_rows(rows, output)
    typer.echo(f"{translation}\n{output}")
