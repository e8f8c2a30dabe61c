"""Wrong input as one line on standard error."""

from collections.abc import Iterator
from contextlib import contextmanager

import typer


@contextmanager
def clear_errors() -> Iterator[None]:
    """Context that turns what is wrong with the input into one line and exit code 2.

    Other exceptions are mistakes of the program and keep their traceback.
    """
    try:
        yield
    except BrokenPipeError:
        raise  # the reader of our output has enough: no error of the input
    except (ValueError, OSError, ArithmeticError) as error:
        typer.echo(f"Error: {one_line(str(error))}", err=True)
        raise typer.Exit(2) from error


def one_line(text: str) -> str:
    """The text without line breaks."""
    return " ".join(text.split())
