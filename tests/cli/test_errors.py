"""What is wrong with the input is one line; what is wrong with us is not hidden."""

import pytest
import typer

from keras_attnvariants.cli.errors import clear_errors
from keras_attnvariants.cli.errors import one_line


@pytest.mark.parametrize("kind", [ValueError, OSError, FloatingPointError])
def test_errors_become_one_line(kind, capsys):
    with pytest.raises(typer.Exit) as stop, clear_errors():
        raise kind("first line,\n  second. Received: 3")
    assert stop.value.exit_code == 2
    assert capsys.readouterr().err == "Error: first line, second. Received: 3\n"


@pytest.mark.parametrize("kind", [KeyError, TypeError, BrokenPipeError])
def test_mistakes_of_ours_keep_their_traceback(kind):
    with pytest.raises(kind), clear_errors():
        raise kind("bug")


def test_one_line():
    assert one_line("  a\n b\tc ") == "a b c"
