"""`kav plot`: the learning curves of runs, as a picture and as a page."""

from pathlib import Path
from typing import Annotated

import typer

from keras_attnvariants.cli.checks import check_matplotlib
from keras_attnvariants.cli.checks import check_output_file
from keras_attnvariants.cli.commands import command
from keras_attnvariants.utils.importing import import_tensorflow

Runs = Annotated[
    list[Path], typer.Argument(help="Folders of runs.", show_default=False)
]
Output = Annotated[
    Path,
    typer.Option(help="Name of the two files, without .png and .html."),
]


@command
def plot(runs: Runs, output: Output = Path("curves")) -> None:
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
