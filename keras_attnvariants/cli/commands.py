"""What makes a function a command: groups of options, and errors in one line."""

import dataclasses
import functools
import inspect
from collections.abc import Callable
from collections.abc import Iterator
from inspect import Parameter
from typing import Any
from typing import get_type_hints

from keras_attnvariants.cli.errors import clear_errors


def command(function: Callable[..., None]) -> Callable[..., None]:
    """A command line for a function; decorator.

    An argument whose type is a dataclass is a group: every field of it is an option or
    argument of the command line, in the place of the group. The function receives the
    object. Required options are listed first. What is wrong with the input, of which
    a group may complain when it is made, ends in one line.

    Args:
        function: takes its arguments by name, each annotated for typer or a group.

    Example:

    ```python
    @dataclass(frozen=True, kw_only=True)
    class Place:
        host: Annotated[str, typer.Option(help="Address.")] = "127.0.0.1"
        port: Annotated[int, typer.Option(help="Port.")] = 8080

    @command
    def ask(*, place: Place, timeout: Timeout = 5.0) -> None: ...
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

    parameters = [
        parameter
        for own in _parameters(function)
        for parameter in (
            _parameters(groups[own.name]) if own.name in groups else (own,)
        )
    ]
    parameters.sort(key=lambda parameter: parameter.default is not Parameter.empty)
    # typer reads the names from the one, and the types from the other.
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    vars(run)["__signature__"] = inspect.Signature(parameters)
    return run


def _parameters(function: Callable[..., Any]) -> Iterator[Parameter]:
    """The parameters of a function or of a dataclass, with what typer reads of them."""
    hints = get_type_hints(function, include_extras=True)
    for parameter in inspect.signature(function).parameters.values():
        yield parameter.replace(
            kind=Parameter.KEYWORD_ONLY, annotation=hints[parameter.name]
        )
