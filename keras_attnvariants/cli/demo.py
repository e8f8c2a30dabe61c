"""`kav demo`: a page that translates and shows what models attend to."""

from pathlib import Path
from typing import Annotated

import typer

from keras_attnvariants.cli.commands import command
from keras_attnvariants.cli.models import check_folders
from keras_attnvariants.cli.options import BeamSize
from keras_attnvariants.utils.importing import import_tensorflow
from keras_attnvariants.utils.packages import check_extra

Models = Annotated[
    list[Path],
    typer.Argument(help="Folders of runs or models.", show_default=False),
]
NBest = Annotated[
    int, typer.Option(help="Translations of a sentence, at most the beam size.", min=1)
]
Host = Annotated[
    str, typer.Option(help="Address to listen at; 0.0.0.0 shows the page to everyone.")
]
Port = Annotated[int, typer.Option(help="To listen at.", min=1, max=65535)]


@command
def demo(
    models: Models,
    beam_size: BeamSize = None,
    n_best: NBest = 3,
    host: Host = "127.0.0.1",
    port: Port = 7860,
) -> None:
    """Show a page to translate with models, one or two side by side.

    [bold]Example:[/bold] kav demo runs/multi30k runs/other
    """
    for folder in models:
        check_folders(folder, None)
    check_extra("The page", "demo", ("gradio",))
    import_tensorflow()
    from keras_attnvariants.cli.demo_models import DemoModel

    loaded = {
        name: DemoModel(path, beam_size, n_best)
        for name, path in short_names(models).items()
    }
    for model in loaded.values():
        # So that nobody waits for what is compiled.
        model.read(".")
    from keras_attnvariants.cli.demo_page import build_page
    from keras_attnvariants.cli.demo_page import open_page

    typer.echo(f"Open http://{host}:{port} in a browser; Ctrl and C end it.")
    open_page(build_page(loaded), host, port)


def short_names(paths: list[Path]) -> dict[str, Path]:
    """The paths by their last parts, or by the whole where that is not enough."""
    last = [path.resolve().name for path in paths]
    return {
        str(path) if last.count(name) > 1 else name: path
        for name, path in zip(last, paths, strict=True)
    }
