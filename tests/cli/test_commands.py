"""Commands from functions: groups of options, their order, and errors in one line."""

import inspect
from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from keras_attnvariants.cli.commands import command
from tests.cli.conftest import check_error


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where something is."""

    host: Annotated[str, typer.Option(help="Address.")]
    port: Annotated[int, typer.Option(help="Port.", min=1)] = 80

    def __post_init__(self):
        if self.host == "nowhere":
            raise ValueError("There is no such\nplace.")


@pytest.fixture
def calls():
    return []


@pytest.fixture
def ask(calls):
    @command
    def ask(
        *,
        question: Annotated[str, typer.Argument()] = "why",
        place: Place,
        loud: Annotated[bool, typer.Option("--loud")] = False,
    ) -> None:
        """Ask something."""
        calls.append((question, place, loud))

    return ask


def run(ask, *arguments):
    app = typer.Typer()
    app.command()(ask)
    return CliRunner().invoke(app, arguments)


def test_fields_of_groups_are_options(ask, calls):
    result = run(ask, "--host", "here", "--port", "8", "how", "--loud")
    assert result.exit_code == 0
    assert run(ask, "--host", "there").exit_code == 0
    assert calls == [
        ("how", Place(host="here", port=8), True),
        ("why", Place(host="there", port=80), False),
    ]


def test_options_stand_in_the_place_of_their_group_and_required_ones_first(ask):
    names = list(inspect.signature(ask).parameters)
    assert names == ["host", "question", "port", "loud"]
    assert (ask.__name__, ask.__doc__) == ("ask", "Ask something.")


def test_types_and_ranges_of_fields_are_checked(ask, calls):
    result = run(ask, "--host", "here", "--port", "0")
    assert result.exit_code == 2 and "--port" in result.stderr
    assert calls == []


def test_a_group_that_complains_is_one_line(ask, calls):
    check_error(run(ask, "--host", "nowhere"), "There is no such place.")
    assert calls == []
