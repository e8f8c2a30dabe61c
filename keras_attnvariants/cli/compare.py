"""`kav compare` and `kav plot`: systems side by side, by score and as they learn."""

import shlex
from pathlib import Path
from typing import Annotated
from typing import Any

import typer

from keras_attnvariants.cli.commands import command
from keras_attnvariants.cli.options import Imports
from keras_attnvariants.cli.options import check_matplotlib
from keras_attnvariants.cli.options import check_output_file
from keras_attnvariants.cli.options import check_output_folder
from keras_attnvariants.cli.options import checked
from keras_attnvariants.cli.options import import_modules
from keras_attnvariants.utils.checks import check_positive
from keras_attnvariants.utils.importing import import_tensorflow

File = Annotated[
    Path | None,
    typer.Argument(help="TOML file that describes the comparison."),
]
Folder = Annotated[
    Path | None,
    typer.Option(
        help="Folder of the comparison. If it holds the same one already, that is "
        "continued."
    ),
]
Only = Annotated[
    list[str] | None,
    typer.Option(
        metavar="SYSTEM", help="Train this system only; may be given several times."
    ),
]
Minutes = Annotated[
    float | None,
    typer.Option(
        help="Stop after so long; the same command goes on later.",
        callback=checked(check_positive),
    ),
]
ScoreOnly = Annotated[
    bool, typer.Option("--score-only", help="Train nothing; score what is there.")
]
Init = Annotated[
    Path | None,
    typer.Option(help="Write a file to begin with, in which every key is explained."),
]


@command
def compare(
    file: File = None,
    folder: Folder = None,
    only: Only = None,
    minutes: Minutes = None,
    score_only: ScoreOnly = False,
    init: Init = None,
    imports: Imports = None,
) -> None:
    """Compare systems: train each with several seeds, score, test, write a report.

    Every run has the same corpus, vocabulary and budget. After an interruption, the
    same command continues where it stopped. Writes tables (CSV, LaTeX), results.json
    and a page into the folder.

    [bold]Example:[/bold] kav compare --init comparison.toml, then
    kav compare comparison.toml --folder runs/comparison
    """
    if init is not None:
        if file or folder or only or minutes or score_only:
            raise ValueError("--init writes a file and does nothing else.")
        begin(init)
        return
    if file is None or folder is None:
        raise ValueError("Give a file and --folder, or --init for a file.")
    if score_only and (only or minutes):
        raise ValueError("--score-only trains nothing: no --only, no --minutes.")
    check_output_folder("--folder", folder)
    if not file.is_file():
        raise FileNotFoundError(f"There is no such file. Received: {file}")
    import_modules(imports)
    import keras_attnvariants as kav

    comparison = kav.experiments.Comparison.from_file(file, folder, imports or ())
    words = ["kav", "compare", str(file), "--folder", str(folder)]
    words += [word for module in imports or () for word in ("--import", module)]
    result = comparison.run(only or (), minutes, score_only, shlex.join(words))
    show(result, folder)


def begin(init: Path) -> None:
    """Writes a file to begin with.

    Raises:
        OSError: there is such a file, or it cannot be written.
    """
    from keras_attnvariants.experiments import write_template

    write_template(init)
    file = shlex.quote(str(init))
    typer.echo(f"Next: edit {file}, then kav compare {file} --folder FOLDER")


def show(result: Any, folder: Path) -> None:
    """Print the scores, and what is missing."""
    from rich.console import Console

    from keras_attnvariants.experiments.result_files import score_table

    Console().print(score_table(result))
    if result.missing:
        typer.echo(f"Missing: {', '.join(result.missing)}. The same command goes on.")
    typer.echo(f"Results: {folder}")


Runs = Annotated[list[Path], typer.Argument(help="Folders of runs.")]
Curves = Annotated[
    Path,
    typer.Option(help="Name of the two files, without .png and .html."),
]


@command
def plot(runs: Runs, output: Curves = Path("curves")) -> None:
    """Draw the learning curves of runs: loss, BLEU, learning rate and speed.

    Writes a picture (.png) and a page that needs no other file (.html).

    [bold]Example:[/bold] kav plot runs/hc-sa runs/base --output curves
    """
    check_matplotlib()
    logs = {str(run): run / "log.jsonl" for run in runs}
    for run, log in logs.items():
        if not log.is_file():
            raise FileNotFoundError(
                f"`runs` must be folders of runs, with log.jsonl. Received: {run}"
            )
    picture, page = (
        output.with_name(output.name + suffix) for suffix in (".png", ".html")
    )
    for path in (picture, page):
        check_output_file(path)
    import_tensorflow()
    from keras_attnvariants.evaluation.curves import draw_curves
    from keras_attnvariants.evaluation.curves import save_page
    from keras_attnvariants.evaluation.curves import save_png
    from keras_attnvariants.training.runs import read_log

    events = {run: read_log(log) for run, log in logs.items()}
    figure = draw_curves(events)
    save_png(figure, picture)
    save_page(figure, events, page)
    typer.echo(f"{picture}\n{page}")
