"""A way to run `kav`, and a run shared by all tests that only read it."""

from collections.abc import Callable

import pytest
from typer.testing import CliRunner

from keras_attnvariants.cli import app


@pytest.fixture
def kav(monkeypatch, corpus_cache) -> Callable:
    """Runs `kav` in this process with these arguments and this standard input."""
    monkeypatch.setenv("KAV_CACHE", str(corpus_cache))
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments, input: str | bytes | None = None):
        arguments = [str(argument) for argument in arguments]
        return CliRunner().invoke(app, arguments, input=input)

    return run


def stdout(result) -> str:
    """Standard output of a successful command."""
    assert result.exit_code == 0, result.output
    return result.stdout


def check_error(result, *phrases) -> None:
    """One line on standard error that holds all phrases, and exit code 2."""
    assert result.exit_code == 2, result.output
    [line] = result.stderr.splitlines()
    assert line.startswith("Error: ")
    for phrase in phrases:
        assert phrase in line
    assert "Traceback" not in result.output
