"""`kav evaluate`: the scores of a model on a test set."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from keras_attnvariants.cli.catalogue import CorpusOptions
from keras_attnvariants.cli.commands import command
from keras_attnvariants.cli.commands import option
from keras_attnvariants.cli.models import SystemOptions
from keras_attnvariants.cli.options import IMPORTS
from keras_attnvariants.cli.options import SearchOptions
from keras_attnvariants.cli.options import check_output_file
from keras_attnvariants.cli.options import import_modules
from keras_attnvariants.cli.texts import with_progress
from keras_attnvariants.utils.lines import on_one_line

if TYPE_CHECKING:
    from keras_attnvariants.evaluation import Report


@command
def evaluate(
    *,
    corpus: CorpusOptions,
    systems: SystemOptions,
    split: str = option("Which part of the corpus.", "test"),
    sentences: int | None = option(
        "Only that many sentences, from the start of the split.", min=1
    ),
    search: SearchOptions,
    tokenize: str = option("sacreBLEU's tokenizer: 13a, zh, ja-mecab, char, …", "13a"),
    speed_runs: int = option(
        "Translate the test set that many times more, to measure the speed.", 0, min=0
    ),
    output: Path | None = option("File to write the translations to, one per line."),
    imports: list[str] | None = IMPORTS,
) -> None:
    """Score a model, a SavedModel or both on a test set: BLEU, chrF and TER.

    The signature behind each score says how sacreBLEU computed it; quote it too.

    [bold]Example:[/bold] kav evaluate --model runs/multi30k
    --data multi30k --source en --target de --split test2016
    """
    if systems.model is None and systems.saved_model is None:
        raise ValueError("Give --model, --saved-model, or both to compare them.")
    systems.check()
    if output is not None and systems.model is not None and systems.saved_model:
        raise ValueError("--output takes the translations of one system only.")
    check_output_file(output)
    import_modules(imports)
    import keras_attnvariants as kav
    from keras_attnvariants.evaluation.metrics import check_tokenizer

    check_tokenizer(tokenize)
    lines = corpus.load().read_lines(split)
    sources, references = (texts[:sentences] for texts in lines)
    for path, translate in systems.translators(search).items():
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
