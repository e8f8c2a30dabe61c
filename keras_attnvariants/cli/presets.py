"""`kav presets`: a table of the published configurations."""

from typing import Annotated

import typer

from keras_attnvariants.cli.commands import command
from keras_attnvariants.cli.options import Imports
from keras_attnvariants.cli.options import checked
from keras_attnvariants.cli.options import import_modules
from keras_attnvariants.utils.checks import check_positive

MILLION = 1_000_000
POSITIVE = checked(check_positive)


@command
def presets(
    name: Annotated[
        str,
        typer.Argument(help="Part of the name, such as iwslt16."),
    ] = "",
    paper: Annotated[
        str,
        typer.Option(help="Part of the paper's short name or title, such as you2020."),
    ] = "",
    variant: Annotated[
        str,
        typer.Option(
            help="An attention class that the model contains, such as NeuralNgram, or "
            "the middle part of the name, such as hc-sa."
        ),
    ] = "",
    min_parameters: Annotated[
        float | None,
        typer.Option(help="At least that many million parameters.", callback=POSITIVE),
    ] = None,
    max_parameters: Annotated[
        float | None,
        typer.Option(help="At most that many million parameters.", callback=POSITIVE),
    ] = None,
    imports: Imports = None,
) -> None:
    """List the published configurations: size, parameters, published figures.

    The figures are BLEU by direction; where there is none, that of the development
    set, or ROUGE.

    [bold]Example:[/bold] kav presets iwslt16 --paper you2020 --max-parameters 20
    """
    import_modules(imports)
    from rich.console import Console

    import keras_attnvariants as kav

    found = kav.presets.list(
        name,
        paper=paper,
        variant=variant,
        min_parameters=min_parameters and round(min_parameters * MILLION),
        max_parameters=max_parameters and round(max_parameters * MILLION),
    )
    if not found:
        raise ValueError("No preset fits. `kav presets` without options lists all.")
    Console(highlight=False).print(found)
