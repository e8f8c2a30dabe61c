"""The program: its commands, its version, and errors in one line."""

import functools
import sys
from collections.abc import Sequence
from typing import Annotated
from typing import Any

import typer
from typer.core import TyperGroup

import keras_attnvariants
from keras_attnvariants.cli.analyse import analyse
from keras_attnvariants.cli.attention import attention
from keras_attnvariants.cli.compare import compare
from keras_attnvariants.cli.corpora import corpora
from keras_attnvariants.cli.demo import demo
from keras_attnvariants.cli.doctor import doctor
from keras_attnvariants.cli.errors import one_line
from keras_attnvariants.cli.evaluate import evaluate
from keras_attnvariants.cli.export import export
from keras_attnvariants.cli.plot import plot
from keras_attnvariants.cli.presets import presets
from keras_attnvariants.cli.serve import serve
from keras_attnvariants.cli.shortlist import shortlist
from keras_attnvariants.cli.train import train
from keras_attnvariants.cli.translate import translate
from keras_attnvariants.cli.tune import tune

# How pydantic, which reads the values of options for typer, begins some messages.
CHECKER = "Value error, "


class OneLineErrors(TyperGroup):
    """Commands whose usage errors are one line, as their other errors are."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        run = functools.partial(
            super().main,
            args,
            prog_name,
            complete_var,
            standalone_mode=False,
            windows_expand_args=windows_expand_args,
            **extra,
        )
        if not standalone_mode:
            return run()
        try:
            code = run()
        except typer.TyperException as error:
            message = one_line(error.format_message()).replace(CHECKER, "")
            typer.echo(f"Error: {message}", err=True)
            sys.exit(error.exit_code)
        except typer.Abort:
            sys.exit(1)
        # What a command returns is no status; `typer.Exit` gives one.
        sys.exit(code if isinstance(code, int) else 0)


app = typer.Typer(
    cls=OneLineErrors, pretty_exceptions_enable=False, rich_markup_mode="rich"
)


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.")
    ] = False,
) -> None:
    """Translation models with attention variants: train, score, use and serve them.

    [bold]kav COMMAND --help[/bold] explains a command.
    """
    if version:
        typer.echo(keras_attnvariants.__version__)
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


COMMANDS = (
    train,
    tune,
    compare,
    evaluate,
    translate,
    shortlist,
    export,
    serve,
    demo,
    plot,
    attention,
    analyse,
    presets,
    corpora,
    doctor,
)

for command in COMMANDS:
    app.command()(command)
