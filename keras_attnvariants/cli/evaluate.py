"""`kav evaluate` and `kav compare`: scores of models."""

import shlex
from functools import partial
from itertools import islice
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Annotated
from typing import Any

import typer

from keras_attnvariants.cli.catalogue import CorpusOptions
from keras_attnvariants.cli.commands import argument
from keras_attnvariants.cli.commands import command
from keras_attnvariants.cli.commands import option
from keras_attnvariants.cli.options import IMPORTS
from keras_attnvariants.cli.options import SearchOptions
from keras_attnvariants.cli.options import check_output_file
from keras_attnvariants.cli.options import check_output_folder
from keras_attnvariants.cli.options import import_modules
from keras_attnvariants.cli.systems import DecodingOptions
from keras_attnvariants.cli.systems import SystemOptions
from keras_attnvariants.cli.texts import with_progress
from keras_attnvariants.utils.lines import on_one_line

if TYPE_CHECKING:
    from keras_attnvariants.evaluation import Report


@command
def evaluate(
    *,
    corpus: CorpusOptions,
    systems: SystemOptions,
    split: str = option("Part of the corpus to score.", "test"),
    sentences: int | None = option(
        "Only that many sources, from the start of the split.", min=1
    ),
    references: Path | None = option(
        "File with several references for each source, instead of those of the "
        "corpus: one JSON list per line; plain or .gz."
    ),
    groups: Path | None = option(
        "File with the group of each source, such as its speaker, one per line. "
        "Intervals then come from resampled groups."
    ),
    samples: int = option("Resampled test sets, for intervals; 0: none.", 1000, min=0),
    search: SearchOptions,
    tokenize: str = option("sacreBLEU's tokenizer: 13a, zh, ja-mecab, char, …", "13a"),
    speed_runs: int = option(
        "Number of further runs on the test set, to measure the speed.", 0, min=0
    ),
    output: Path | None = option("File to write the outputs to, one per line."),
    imports: list[str] | None = IMPORTS,
) -> None:
    """Score a model, an exported one or several on a test set.

    Translations get BLEU, chrF and TER; summaries ROUGE, beside that of the first
    sentence and of the best one; transcripts error rates of words and characters.
    Brackets contain 95 % intervals. The signature after each score says how it was
    computed; quote it too.

    [bold]Example:[/bold] kav evaluate --model runs/multi30k
    --data multi30k --source en --target de --split test2016
    """
    if systems.count == 0:
        raise ValueError("Give --model, --saved-model or --server, or several of them.")
    systems.check()
    if output is not None and systems.count > 1:
        raise ValueError("--output takes the outputs of one system only.")
    check_output_file(output)
    import_modules(imports)
    import keras_attnvariants as kav
    from keras_attnvariants.data.tasks import get as get_task
    from keras_attnvariants.evaluation.baselines import BASELINES
    from keras_attnvariants.evaluation.metrics import check_tokenizer

    check_tokenizer(tokenize)
    task = get_task(corpus.task or systems.task)
    loaded = corpus.load(task.name)
    sources, targets = (texts[:sentences] for texts in loaded.read_lines(split))
    reference_sets: Any = [targets]
    lines = len(sources), sentences is None
    if references is not None:
        reference_sets = read_references(references, *lines)
    score = partial(
        kav.evaluation.evaluate,
        sources=sources,
        references=reference_sets,
        metrics=task.metrics,
        tokenize=tokenize,
        samples=samples,
        groups=None if groups is None else first_lines("--groups", groups, *lines),
    )
    translators = systems.translators(task, DecodingOptions(**vars(search)))
    place = f"{len(sources)} {task.source}s of {split}"
    for name in task.baselines:
        report = score(partial(BASELINES[name], references=reference_sets))
        show_report(report, f"{name} on {place}", task.source)
    for name, translate in translators.items():
        system = with_progress(translate, name, task.at_once)
        report = score(system, speed_runs=speed_runs)
        show_report(report, f"{name} on {place}", task.source)
        if output is not None:
            text = "".join(f"{on_one_line(x)}\n" for x in report.hypotheses)
            output.write_text(text, "utf-8", newline="\n")


def first_lines(option: str, path: Path, count: int, exactly: bool) -> list[str]:
    """The first lines of a file with one line per source.

    Args:
        option: the option that names the file.
        path: path of the file.
        count: number of sources.
        exactly: whether the file must have no more lines.

    Raises:
        ValueError: there are too few or too many.
    """
    from keras_attnvariants.data.text_files import read_text_lines

    found = [*islice(read_text_lines(path), count + exactly)]
    if len(found) != count:
        raise ValueError(
            f"{option} must have a line for each source. "
            f"Received: {len(found)} lines for {count} sources"
        )
    return found


def read_references(path: Path, count: int, exactly: bool) -> list[list[str | None]]:
    """Sets of references for some sources, from a file with a JSON list per line.

    Args:
        path, count, exactly: see `first_lines`.

    Raises:
        ValueError: a line is not such a list, or there are too few or too many.
    """
    from pydantic import Field
    from pydantic import TypeAdapter

    texts = TypeAdapter[list[str]](Annotated[list[str], Field(min_length=1)])
    found: list[list[str]] = []
    lines = first_lines("--references", path, count, exactly)
    for number, line in enumerate(lines, start=1):
        try:
            found.append(texts.validate_json(line))
        except ValueError as error:
            raise ValueError(
                f"Line {number} of --references must be a JSON list of texts. "
                f"Received: {line[:50]!r} in {path}"
            ) from error
    return [[*texts] for texts in zip_longest(*found)]


def show_report(report: "Report", title: str, source: str) -> None:
    """Prints a title, the scores, one per line, and the speed if it was measured."""
    typer.echo(f"{title}:")
    for score in report.scores:
        typer.echo(f"  {score.name:7} {score.shown:>6}  {score.signature}")
        if score.name in ("WER", "CER"):
            typer.echo(f"          {score.details}")
    if report.speed is not None:
        typer.echo(f"  {report.speed.sentences_per_second:.1f} {source}s/s")


@command
def compare(
    file: Path | None = argument("TOML file that describes the comparison.", None),
    folder: Path | None = option(
        "Folder of the comparison. If it holds the same one already, that is continued."
    ),
    only: list[str] | None = option(
        "Train this system only; may be given several times.", metavar="SYSTEM"
    ),
    minutes: float | None = option(
        "Stop after that time; the same command continues later.", min=0.01
    ),
    score_only: bool = option("Train nothing; score what is there.", False),
    records: Path | None = option(
        "Folder that keeps a small file of each run, without weights. Runs with a file "
        "there need not be in --folder."
    ),
    init: Path | None = option(
        "Write a file to start from, in which every key is explained."
    ),
    imports: list[str] | None = IMPORTS,
) -> None:
    """Compare systems: train each with several seeds, score, test, write a report.

    Every run has the same corpus, vocabulary and budget. After an interruption, the
    same command continues where it stopped. Writes tables (CSV), results.json
    and a page into the folder.

    [bold]Example:[/bold] kav compare --init comparison.toml, then
    kav compare comparison.toml --folder runs/comparison
    """
    if init is not None:
        if file or folder or only or minutes or score_only or records:
            raise ValueError("--init writes a file and does nothing else.")
        from keras_attnvariants.experiments import write_template

        write_template(init)
        begun = shlex.quote(str(init))
        typer.echo(f"Next: edit {begun}, then kav compare {begun} --folder FOLDER")
        return
    if file is None or folder is None:
        raise ValueError("Give a file and --folder, or --init to write a file.")
    if score_only and (only or minutes):
        raise ValueError("--score-only trains nothing: no --only, no --minutes.")
    from keras_attnvariants.data.text_files import check_file

    check_output_folder("--folder", folder)
    check_file(file, "file")
    import_modules(imports)
    from rich.console import Console

    import keras_attnvariants as kav

    comparison = kav.experiments.Comparison.from_file(file, folder, imports or ())
    words = ["kav", "compare", str(file), "--folder", str(folder)]
    words += [word for module in imports or () for word in ("--import", module)]
    words += ["--records", str(records)] if records else []
    result = comparison.run(only or (), minutes, score_only, shlex.join(words), records)
    Console().print(result)
    if result.missing:
        missing = ", ".join(result.missing)
        typer.echo(f"Missing: {missing}. The same command continues.")
    typer.echo(f"Results: {folder}")
