"""Commands from functions, errors in one line, help, version and completion."""

import inspect
import os
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest
import typer
from typer.testing import CliRunner

import keras_attnvariants
from keras_attnvariants.cli.commands import argument
from keras_attnvariants.cli.commands import clear_errors
from keras_attnvariants.cli.commands import command
from keras_attnvariants.cli.commands import given
from keras_attnvariants.cli.commands import one_line
from keras_attnvariants.cli.commands import option
from tests.cli.conftest import check_error
from tests.cli.conftest import stdout


@dataclass(frozen=True, kw_only=True)
class Place:
    """The location of something."""

    host: str = option("Address.", ...)
    port: int = option("Port.", 80, min=1)

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
        question: str = argument("Question.", "why"),
        place: Place,
        loud: bool = option("Loudly.", False),
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


def test_options_of_a_group_stand_in_its_panel(kav):
    @dataclass(frozen=True, kw_only=True)
    class Size:
        PANEL: ClassVar[str] = "Size of it"

        hidden_dim: int | None = option("Width.", None, "--width")

    @command
    def build(size: Size) -> None:
        """Build."""

    result = run(build, "--help")
    assert "─ Size of it ─" in result.stdout and "--width" in result.stdout


def test_options_that_were_given_by_name():
    @dataclass(frozen=True, kw_only=True)
    class Size:
        width: int | None = option("Width.")
        depth: int | None = option("Depth.")
        rate: float | None = option("Rate.")

    assert given(Size(width=0)) == {"width": 0}
    assert given(Size(width=3, depth=2, rate=0.5), "rate") == {"width": 3, "depth": 2}


def test_a_group_that_complains_is_one_line(ask, calls):
    check_error(run(ask, "--host", "nowhere"), "There is no such place.")
    assert calls == []


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


COMMANDS = (
    "train",
    "evaluate",
    "translate",
    "transcribe",
    "export",
    "serve",
    "demo",
    "attention",
    "analyse",
    "compare",
    "tune",
    "shortlist",
    "presets",
    "corpora",
    "doctor",
)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_explains_every_option(name, kav):
    result = kav(name, "--help")
    assert result.exit_code == 0
    assert "Usage" in result.stdout
    lines = [line for line in result.stdout.splitlines() if line[:1] == "│"]
    options = [line for line in lines if " --" in line]
    assert len(options) >= 1
    for line in options:
        assert len(line.replace("│", "").split()) >= 3, line


@pytest.mark.parametrize("call", [(), ("translate",), ("serve",)])
def test_flags_show_no_type(call, kav):
    output = stdout(kav(*call, "--help"))
    assert "--help" in output and "bool" not in output


def test_without_a_command_the_commands_are_listed(kav):
    output = stdout(kav())
    assert output == stdout(kav("--help"))
    for name in COMMANDS:
        assert f" {name} " in output
    assert "--install-completion" in output


def test_closed_streams_are_not_written_to_by_accident(tmp_path):
    """A file that is opened does not receive output meant for a closed stream."""
    code = (
        "import sys\n"
        "from keras_attnvariants.cli.commands import open_closed_streams\n"
        "open_closed_streams()\n"
        "with open(sys.argv[1], 'w') as file:\n"
        "    print('lost', flush=True)\n"
        "    print('lost', file=sys.stderr, flush=True)\n"
        "    file.write(f'{sys.stdin.read()}{sys.stdout.isatty()}')"
    )
    path = tmp_path / "file"
    call = ["sh", "-c", '"$@" <&- >&- 2>&-', "sh", sys.executable, "-c", code, path]
    subprocess.run(call, check=True)
    assert path.read_text() == "False"


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        ("<&-", "Standard input is closed: give sentences or --input."),
        (">&-", "Standard output is closed: give --output."),
    ],
)
def test_translations_need_their_streams(call, problem, run_folder):
    program = ["-m", "keras_attnvariants", "translate", "--model", run_folder]
    done = subprocess.run(
        ["sh", "-c", f'"$@" {call}', "sh", sys.executable, *program],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (2, f"Error: {problem}\n")


def test_without_a_home_the_variable_is_named(tmp_path):
    """Nor is a folder called `~` made."""
    code = (
        "import os, pwd, sys\n"
        "def getpwuid(number): raise KeyError(number)\n"
        "pwd.getpwuid = getpwuid\n"
        "from keras_attnvariants.cli import app\n"
        "app(sys.argv[1:])"
    )
    names = ("HOME", "KAV_CACHE", "XDG_CACHE_HOME", "KERAS_HOME")
    environment = {k: v for k, v in os.environ.items() if k not in names}
    environment["PYTHONPATH"] = str(Path(__file__).parents[2])
    for call, text in (
        ("corpora", "environment variable KAV_CACHE"),
        ("doctor", "environment variable KAV_CACHE"),
        ("presets cs287", "cs287/megatron"),
    ):
        done = subprocess.run(
            [sys.executable, "-c", code, *call.split()],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        output = done.stdout + done.stderr
        assert text in output and "Traceback" not in output
    assert not list(tmp_path.iterdir())


def test_next_commands_can_be_pasted(kav, tmp_path):
    path = tmp_path / "a 'new' file.toml"
    output = stdout(kav("compare", "--init", path))
    words = shlex.split(output.partition(", then ")[2])
    assert words == ["kav", "compare", str(path), "--folder", "FOLDER"]


def test_the_version(kav):
    assert stdout(kav("--version")) == f"{keras_attnvariants.__version__}\n"


@pytest.mark.parametrize(
    "arguments", [(), ("--help",), *((name, "--help") for name in COMMANDS)]
)
def test_help_imports_neither_keras_nor_tensorflow(arguments):
    code = (
        "import sys; from keras_attnvariants.cli import app\n"
        "try: app(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        "assert not {'keras', 'tensorflow', 'jax', 'numpy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code, *arguments], check=True)


def test_the_package_is_a_program_that_helps_before_keras_is_imported():
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "keras_attnvariants", "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "python -m keras_attnvariants" in done.stdout
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "typer" in imported
    assert not imported & {"keras", "tensorflow", "jax", "numpy"}


def test_unknown_commands_and_options_are_one_line(kav):
    check_error(kav("trane"), "No such command", "trane")
    check_error(kav("translate", "--modell", "x"), "No such option", "--modell")
    check_error(kav("export"), "Missing option", "--model")


def test_a_value_that_an_option_does_not_have(kav):
    message = "Invalid value for '--precision': 'float' is not one of 'auto',"
    result = kav("train", "--precision", "float")
    assert result.exit_code == 2
    assert result.stderr.startswith(f"Error: {message}")
