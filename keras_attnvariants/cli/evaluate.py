"""`kav evaluate`: the scores of a model on a test set."""

from pathlib import Path
from typing import TYPE_CHECKING
from typing import Annotated

import typer

from keras_attnvariants.cli.catalogue import CorpusOptions
from keras_attnvariants.cli.commands import command
from keras_attnvariants.cli.models import check_folders
from keras_attnvariants.cli.models import translators
from keras_attnvariants.cli.options import Imports
from keras_attnvariants.cli.options import Model
from keras_attnvariants.cli.options import PrecisionOption
from keras_attnvariants.cli.options import SavedModel
from keras_attnvariants.cli.options import SearchOptions
from keras_attnvariants.cli.options import SourceTag
from keras_attnvariants.cli.options import check_output_file
from keras_attnvariants.cli.options import import_modules
from keras_attnvariants.cli.texts import with_progress
from keras_attnvariants.utils.lines import on_one_line

if TYPE_CHECKING:
    from keras_attnvariants.evaluation import Report

Split = Annotated[str, typer.Option(help="Which part of the corpus.")]
Sentences = Annotated[
    int | None,
    typer.Option(help="Only that many sentences, from the start of the split.", min=1),
]
Tokenize = Annotated[
    str, typer.Option(help="sacreBLEU's tokenizer: 13a, zh, ja-mecab, char, …")
]
SpeedRuns = Annotated[
    int,
    typer.Option(
        help="Translate the test set that many times more, to measure the speed.", min=0
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(help="File to write the translations to, one per line."),
]


@command
def evaluate(
    *,
    corpus: CorpusOptions,
    model: Model = None,
    saved_model: SavedModel = None,
    split: Split = "test",
    sentences: Sentences = None,
    search: SearchOptions,
    precision: PrecisionOption = None,
    source_tag: SourceTag = None,
    tokenize: Tokenize = "13a",
    speed_runs: SpeedRuns = 0,
    output: Output = None,
    imports: Imports = None,
) -> None:
    """Score a model, a SavedModel or both on a test set: BLEU, chrF and TER.

    The signature behind each score says how sacreBLEU computed it; quote it too.

    [bold]Example:[/bold] kav evaluate --model runs/multi30k
    --data multi30k --source en --target de --split test2016
    """
    if model is None and saved_model is None:
        raise ValueError("Give --model, --saved-model, or both to compare them.")
    check_folders(model, saved_model, precision)
    if output is not None and model is not None and saved_model is not None:
        raise ValueError("--output takes the translations of one system only.")
    check_output_file(output)
    import_modules(imports)
    import keras_attnvariants as kav
    from keras_attnvariants.evaluation.metrics import check_tokenizer

    check_tokenizer(tokenize)
    lines = corpus.load().read_lines(split)
    sources, references = (texts[:sentences] for texts in lines)
    systems = translators(model, saved_model, search, precision, source_tag=source_tag)
    for path, translate in systems.items():
        report = kav.evaluation.evaluate(
            with_progress(translate, str(path)),
            sources,
            references,
            speed_runs=speed_runs,
            tokenize=tokenize,
        )
        typer.echo(f"{path} on {len(sources)} sentences of {split}:")
        show(report)
        if output is not None:
            text = "".join(f"{on_one_line(x)}\n" for x in report.translations)
            output.write_text(text, "utf-8", newline="\n")


def show(report: "Report") -> None:
    """Prints the scores, one a line, and the speed if it was measured."""
    for score in report.scores:
        typer.echo(f"  {score.name:5} {score.value:6.2f}  {score.signature}")
    if report.speed is not None:
        typer.echo(f"  {report.speed.sentences_per_second:.1f} sentences/s")
