"""How far a text is translated: a bar, or plain lines where it cannot be drawn."""

import io
import re
from types import SimpleNamespace

import pytest
from rich.console import Console

from keras_attnvariants.cli import progress
from keras_attnvariants.cli.progress import LineProgress


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still unless it is moved."""
    clock = SimpleNamespace(now=1000.0)
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock.now)
    return clock


def console(terminal):
    return Console(
        file=io.StringIO(),
        force_terminal=terminal,
        force_interactive=terminal,
        width=80,
    )


def test_a_file_gets_a_line_a_minute_without_control_codes(clock):
    screen = console(terminal=False)
    with LineProgress(10_000, console=screen) as bar:
        bar.update(100, 1000)  # compiled, which tells nothing about the others
        for lines in range(110, 501, 10):
            clock.now += 4.0
            bar.update(lines, 10 * lines)
    assert screen.file.getvalue().splitlines() == [
        "25%, 250 lines, 2.5 lines/s, 5:00 left",
        "40%, 400 lines, 2.5 lines/s, 4:00 left",
    ]


def test_the_length_of_a_pipe_is_not_known(clock):
    screen = console(terminal=False)
    with LineProgress(None, "name", screen) as bar:
        bar.update(32, 320)
        clock.now += 64.0
        bar.update(96, 960)
    assert screen.file.getvalue() == "name: 96 lines, 1.0 lines/s\n"


@pytest.mark.parametrize("size", [None, 0, 1000])
def test_a_terminal_gets_a_bar_that_is_erased(clock, size):
    screen = console(terminal=True)
    with LineProgress(size, console=screen) as bar:
        bar.update(32, 0)
        clock.now += 2.0
        bar.update(96, size or 0)
        bar._bar.refresh()
    written = screen.file.getvalue()
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", written)
    assert "96 lines, 32.0 lines/s" in plain
    assert max(map(len, re.split(r"[\r\n]+", plain))) <= 80
    assert written.rstrip().endswith("\x1b[2K")
    assert written.count("\x1b[?25h") == written.count("\x1b[?25l") > 0


def test_a_resumed_text_is_as_fast_as_it_is_now(clock):
    screen = console(terminal=False)
    with LineProgress(100_000, console=screen) as bar:
        bar.update(5000, 50_000)
        clock.now += 100.0
        bar.update(6000, 60_000)
    assert screen.file.getvalue() == "60%, 6,000 lines, 10.0 lines/s, 6:40 left\n"
