"""Output of commands on a terminal of 80 columns, and of a training in a file."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios

import pytest
from typer.main import get_command

from keras_attnvariants.cli import app
from keras_attnvariants.data import sources
from keras_attnvariants.trained.names import model_names

pytestmark = pytest.mark.slow

COLUMNS = 80
SIZES = "--vocabulary-size 50 --layers 1 --width 16 --feed-forward 16 --heads 2"
TRAINING = "--steps 1500 --validate-every 500 --batch-tokens 512 --precision float32"


@pytest.fixture
def command(corpus_folder, tmp_path):
    folders = f"--data {corpus_folder} --run {tmp_path / 'run'}"
    call = f"train --source xx --target yy {folders} {SIZES} {TRAINING}"
    return [sys.executable, "-m", "keras_attnvariants", *call.split()]


@pytest.fixture
def environment(corpus_cache, monkeypatch):
    for name in ("CI", "COLUMNS", "NO_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    return os.environ | {"KAV_CACHE": str(corpus_cache), "TERM": "xterm-256color"}


def on_terminal(command, environment):
    """Exit status and output of a process on a terminal of 80 columns."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))
    with subprocess.Popen(
        command, stdin=its, stdout=its, stderr=its, env=environment
    ) as process:
        os.close(its)
        written = b""
        try:
            while part := os.read(ours, 1 << 16):
                written += part
        except OSError:
            pass  # how Linux says that the other end was closed
    os.close(ours)
    return process.returncode, written.decode()


def test_a_terminal_of_eighty_columns(command, environment):
    status, written = on_terminal(command, environment)
    assert status == 0, written
    text = re.sub(r"\x1b\[[0-9;]*m", "", written)  # colors
    lines = [line for line in re.split(r"\x1b\[[0-9?]*[A-Za-z]|[\r\n]+", text) if line]
    bars = [line for line in lines if re.match(r"[━╸╺ ]* *\d+%, ", line)]
    assert any("compiling" in bar for bar in bars)
    assert any(
        re.search(r"update \d+, loss .* tokens/s, \d:\d\d left", b) for b in bars
    )
    stays = [line for line in lines if line.startswith("update ")]
    assert [line.split(":")[0] for line in stays] == [
        "update 500",
        "update 1,000",
        "update 1,500",
    ]
    assert all("loss" in line and "val_loss" in line for line in stays)
    shown = [line for line in lines if line.startswith("  translation  ")]
    assert len(shown) == 2 * len(stays)
    assert max(map(len, [*bars, *stays, *shown])) <= COLUMNS
    # Nothing stands on the line of a bar.
    assert all(re.search(r"(compiling|validating|left|loss [\d.]+)$", b) for b in bars)
    # The cursor is back, and what follows the bar has lines of its own.
    assert written.count("\x1b[?25h") == written.count("\x1b[?25l") > 0
    assert any(line.startswith("Best val_loss") for line in lines)


def test_a_file_and_an_error_after_some_updates(command, environment):
    environment = environment | {"FORCE_COLOR": "1"}
    done = subprocess.run(
        [*command, "--learning-rate", "1e30", "--warmup-steps", "1"],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "\x1b" not in done.stdout + done.stderr
    assert "\r" not in done.stdout + done.stderr
    lines = done.stderr.splitlines()
    assert lines[-1].startswith("Error: step ")
    assert all(re.match(r"\d+%, update |update |  \w+ ", line) for line in lines[:-1])


@pytest.mark.parametrize("pages", [True, False])
def test_a_long_list_is_shown_by_a_pager_on_a_terminal(pages, environment):
    words = ["presets"] if pages else ["presets", "cs287"]
    call = [sys.executable, "-m", "keras_attnvariants", *words]
    environment["PAGER"] = "sed s/^/:/"
    status, written = on_terminal(call, environment)
    assert status == 0
    lines = written.splitlines()
    assert any("cs287/megatron" in line for line in lines)
    assert all(line.startswith(":") for line in lines) == pages


def plain(written):
    """The text on the terminal, without colors and the sides of boxes."""
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", written)
    return text.replace("│", " ")


def commands(command=None, *words):
    """All commands and groups of `kav`, by their words."""
    command = command or get_command(app)
    yield words, command
    for name, own in getattr(command, "commands", {}).items():
        yield from commands(own, *words, name)


def test_the_help_of_every_command_breaks_no_word(environment):
    show_all = (
        "import contextlib, sys\n"
        "from keras_attnvariants.cli import app\n"
        "for words in sys.argv[1:]:\n"
        "    with contextlib.suppress(SystemExit):\n"
        "        app([*words.split(), '--help'], prog_name='kav')\n"
    )
    calls = [" ".join(words) for words, _ in commands()]
    call = [sys.executable, "-c", show_all, *calls]
    status, written = on_terminal(call, environment)
    assert status == 0
    text = plain(written)
    assert max(map(len, text.splitlines())) <= COLUMNS
    assert not re.search(r"<\w+\|", text)  # choices, which may be apart
    whole = set(text.split())
    for words, found in commands():
        texts = [found.help, *(parameter.help for parameter in found.params)]
        needed = " ".join(texts).replace("[bold]", "").replace("[/bold]", "").split()
        assert set(needed) <= whole, words


@pytest.mark.parametrize(
    "call", ["", "--version", "corpora", "models", "presets cs287", "doctor"]
)
def test_a_cheap_command_breaks_no_word(call, environment):
    call = [sys.executable, "-m", "keras_attnvariants", *call.split()]
    status, written = on_terminal(call, environment)
    assert status == 0
    text = plain(written)
    long = [line for line in text.splitlines() if len(line) > COLUMNS]
    assert all(len(line.split()) == 1 for line in long)  # an address
    names = {
        "corpora": [
            *sources.corpus_names(),
            *(sources.get(n).origin for n in sources.corpus_names()),
        ],
        "models": model_names(),
    }
    needed = " ".join(names.get(call[-1], [])).split()
    assert set(needed) <= {word.rstrip(":") for word in text.split()}
