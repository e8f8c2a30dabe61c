"""Help, version and completion; nothing of it waits for Keras."""

import subprocess
import sys
import time

import pytest

import keras_attnvariants
from tests.cli.conftest import check_error
from tests.cli.conftest import stdout

COMMANDS = (
    "train",
    "evaluate",
    "translate",
    "export",
    "serve",
    "demo",
    "plot",
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


def test_without_a_command_the_commands_are_listed(kav):
    output = stdout(kav())
    assert output == stdout(kav("--help"))
    for name in COMMANDS:
        assert f" {name} " in output
    assert "--install-completion" in output


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


def test_the_package_is_a_program():
    # The best of three: other tests run beside this one.
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", "keras_attnvariants", "--help"],
            capture_output=True,
            text=True,
            check=True,
        )
        seconds.append(time.perf_counter() - start)
    assert "python -m keras_attnvariants" in done.stdout
    assert min(seconds) < 1.5, seconds


def test_unknown_commands_and_options_are_one_line(kav):
    check_error(kav("trane"), "No such command", "trane")
    check_error(kav("translate", "--modell", "x"), "No such option", "--modell")
    check_error(kav("export"), "Missing option", "--model")


def test_a_value_that_an_option_does_not_have(kav):
    message = "Invalid value for '--precision': 'float' is not one of 'auto',"
    result = kav("train", "--precision", "float")
    assert result.exit_code == 2
    assert result.stderr.startswith(f"Error: {message}")
