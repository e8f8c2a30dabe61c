"""Turns functions into commands, with groups of options and errors in one line."""

import dataclasses
import functools
import inspect
import os
import sys
from collections.abc import Callable
from collections.abc import Iterator
from contextlib import contextmanager
from inspect import Parameter
from typing import Annotated
from typing import Any
from typing import get_type_hints

import typer
from typer.core import TyperCommand
from typer.core import TyperGroup

import keras_attnvariants

# Prefix of some messages of pydantic, which reads option values for typer.
CHECKER = "Value error, "


def option(help: str, default: Any = None, *names: str, **more: Any) -> Any:
    """An option, as the default of a command's parameter or a field of a group.

    Args:
        help: the text for the user.
        default: the value if it is not given; `...` if it has to be.
        names: names on the command line, by default the field's name with hyphens.
        more: arguments of `typer.Option`, such as `min` and `max`.
    """
    more = {"make": typer.Option, "names": names, "help": help, **more}
    if default is ...:
        default = dataclasses.MISSING
    return dataclasses.field(default=default, metadata=more)


def argument(help: str, default: Any = ..., **more: Any) -> Any:
    """An argument of the command line; see `option`."""
    return option(help, default, make=typer.Argument, **more)


def given(group: Any, *without: str) -> dict[str, Any]:
    """The given options of a group, by the names of its fields.

    Args:
        group: the object.
        without: names of fields to leave out.
    """
    return {
        name: value
        for name, value in vars(group).items()
        if value is not None and name not in without
    }


def command(function: Callable[..., None]) -> Callable[..., None]:
    """Decorator that makes a function a command.

    The default of each parameter is an `option` or `argument`. A parameter whose type
    is a dataclass is a group: each of its fields is an option, listed in the panel that
    the class names in `PANEL`. The function receives the object. Required options are
    listed first. Input errors, which a group may also raise when it is created, become
    messages of one line.

    Args:
        function: function that takes its arguments by name.

    Example:

    ```python
    @dataclass(frozen=True, kw_only=True)
    class Place:
        host: str = option("Address.", "127.0.0.1")
        port: int = option("Port.", 8080, min=1)

    @command
    def ask(*, place: Place, timeout: float = option("Seconds.", 5.0)) -> None: ...
    ```
    """
    groups: dict[str, Any] = {
        name: kind
        for name, kind in get_type_hints(function).items()
        if dataclasses.is_dataclass(kind)
    }

    @functools.wraps(function)
    def run(**options: Any) -> None:
        with clear_errors():
            for name, kind in groups.items():
                fields = [field.name for field in dataclasses.fields(kind)]
                options[name] = kind(**{field: options.pop(field) for field in fields})
            function(**options)

    parameters: list[Parameter] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if kind := groups.get(name):
            fields = {field.name: field for field in dataclasses.fields(kind)}
            parameters += _parameters(kind, fields)
        else:
            parameters += _parameters(function, {name: parameter.default})
    parameters.sort(key=lambda parameter: parameter.default is not Parameter.empty)
    # typer reads names and types from different attributes.
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    vars(run)["__signature__"] = inspect.Signature(parameters)
    # Otherwise typer would keep the line breaks.
    run.__doc__ = "\n\n".join(map(one_line, (function.__doc__ or "").split("\n\n")))
    return run


def _parameters(owner: Any, fields: dict[str, Any]) -> Iterator[Parameter]:
    """The parameters for fields made by `option`, in the form that typer reads."""
    hints = get_type_hints(owner)
    for name, field in fields.items():
        more = {"rich_help_panel": getattr(owner, "PANEL", None), **field.metadata}
        make, names = more.pop("make"), more.pop("names")
        if hints[name] is bool and not names:
            names = (flag(name),)  # without a `--no-` form
        info = make(*names, **more)
        missing = field.default is dataclasses.MISSING
        yield Parameter(
            name,
            Parameter.KEYWORD_ONLY,
            default=Parameter.empty if missing else field.default,
            annotation=Annotated[hints[name], info],
        )


def flag(name: str) -> str:
    """An option as written on the command line."""
    return f"--{name.replace('_', '-')}"


@contextmanager
def clear_errors() -> Iterator[None]:
    """Context that turns input errors into a message of one line and exit code 2.

    Other exceptions are bugs of the program and keep their traceback.
    """
    try:
        yield
    except BrokenPipeError:
        raise  # the reader of our output has closed it: not an input error
    except (ValueError, OSError, ArithmeticError) as error:
        typer.echo(f"Error: {one_line(str(error))}", err=True)
        raise typer.Exit(2) from error


def one_line(text: str) -> str:
    """The text without line breaks."""
    return " ".join(text.split())


class ReadableHelp:
    """Commands whose help fits into 80 columns.

    Options without a value have no type, and the values of a choice are separated.
    """

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, as typer lists them."""
        parameters: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for parameter in parameters:
            if getattr(parameter, "is_bool_flag", False):
                parameter.metavar = ""
            elif parameter.metavar is None and "|" in parameter.display_type(ctx):
                parameter.metavar = parameter.display_type(ctx).replace("|", " | ")
        return parameters


class Command(ReadableHelp, TyperCommand):
    """One command."""


class Program(ReadableHelp, TyperGroup):
    """Commands whose usage errors have one line, like their other errors."""

    def main(self, *args: Any, **extra: Any) -> Any:
        open_closed_streams()
        try:
            code = super().main(*args, **extra | {"standalone_mode": False})
        except typer.TyperException as error:
            message = one_line(error.format_message()).replace(CHECKER, "")
            typer.echo(f"Error: {message}", err=True)
            sys.exit(error.exit_code)
        except typer.Abort:
            sys.exit(1)
        # The return value of a command is not a status; `typer.Exit` has one.
        sys.exit(code if isinstance(code, int) else 0)


def open_closed_streams() -> None:
    """Opens closed standard streams on the null device.

    Otherwise the next opened file would take the number of a closed stream, and get
    what is written to it. `sys.__stdin__` and `sys.__stdout__` still show that they are
    closed.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            nothing = os.open(os.devnull, os.O_RDWR)
            if nothing != number:
                os.dup2(nothing, number)
            setattr(sys, name, open(number, "r" if number == 0 else "w"))


def group(default: Callable[..., None], *commands: Callable[..., None]) -> typer.Typer:
    """A command without options that has subcommands.

    Args:
        default: the command itself, which gives the group its name.
        commands: the subcommands.
    """

    def run(context: typer.Context) -> None:
        if context.invoked_subcommand is None:
            default()

    run.__doc__ = default.__doc__
    return program(run, *commands, name=default.__name__)


def program(
    callback: Callable[..., None],
    *commands: Callable[..., None],
    name: str | None = None,
) -> typer.Typer:
    """Commands under a common one.

    Args:
        callback: called with the context before each of them, and without any.
        commands: the commands.
        name: name of the common command; `None` for the program.
    """
    app = typer.Typer(
        cls=Program, name=name, pretty_exceptions_enable=False, rich_markup_mode="rich"
    )
    app.callback(invoke_without_command=True)(callback)
    for function in commands:
        # The name of one command is a keyword of Python.
        app.command(function.__name__.rstrip("_"), cls=Command)(function)
    return app


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
