"""Texts: read from files and pipes, in chunks, with progress."""

import io
import random
import re
import subprocess
import sys
from types import SimpleNamespace

import pytest
from rich.console import Console

from keras_attnvariants.cli import texts
from keras_attnvariants.cli.texts import LineProgress
from keras_attnvariants.cli.texts import sentences
from keras_attnvariants.utils import progress
from keras_attnvariants.utils.lines import split_lines


def test_chunks_grow_up_to_the_largest():
    sizes = [len(chunk) for chunk in texts.chunks(map(str, range(22)), 2, 8)]
    assert sizes == [2, 4, 8, 8]
    sizes = [len(chunk) for chunk in texts.chunks(map(str, range(7)), 4, 3)]
    assert sizes == [3, 3, 1]
    assert list(texts.chunks([])) == []


def test_nothing_is_read_ahead():
    read = []

    def lines():
        for number in range(100):
            read.append(number)
            yield f"line {number}"

    found = texts.chunks(lines())
    assert next(found)[0] == "line 0"
    assert len(read) == texts.FIRST_CHUNK
    assert [len(chunk) for chunk in found] == [64, 4]


@pytest.mark.parametrize("done", [2, 6, 14, 22, 30])
def test_chunks_of_the_rest_are_those_of_the_whole(done):
    whole = list(texts.chunks(map(str, range(40)), 2, 8))
    rest = list(texts.chunks(map(str, range(done, 40)), 2, 8, done))
    assert rest == whole[-len(rest) :]


@pytest.mark.skipif(sys.platform != "linux", reason="measures memory as Linux does")
def test_a_pipe_of_many_lines_is_a_stream():
    """Runs as a process, because pipes and memory belong to the operating system."""
    program = """
import resource, sys
from pathlib import Path
from keras_attnvariants.cli import app
from keras_attnvariants.cli.systems import SystemOptions

def shout(texts):
    return [text.upper() for text in texts]

SystemOptions.check = lambda *_: None
SystemOptions.translators = lambda *_: {Path(): shout}
try:
    app(["translate", "--model", "."])
finally:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(peak // 1024, file=sys.stderr)
"""

    def peak(count):
        process = subprocess.Popen(
            [sys.executable, "-c", program],
            bufsize=0,  # `communicate` would miss the output that has been read already
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        lines = [f"sentence {number} \u2028 of the pipe\n" for number in range(count)]
        process.stdin.write("".join(lines[:64]).encode())
        # The rest is not written before the first translation is there.
        first = process.stdout.readline()
        out, err = process.communicate("".join(lines[64:]).encode())
        expected = "".join(lines).upper().replace("\u2028", " ")
        assert (first + out).decode() == expected
        return int(err)

    assert peak(100_000) - peak(64) < 16  # MB


def test_progress_is_on_standard_error(capsys):
    translate = texts.with_progress(lambda chunk: chunk, "Translating")
    assert translate(["a", "b"]) == ["a", "b"]
    assert capsys.readouterr().out == ""


PIECES = ("a", "Bär ", "\n", "\n\n", "\r\n", "\ufeff", "\u2028", "\x85", "long " * 9)


def test_lines_of_a_file_and_its_size(tmp_path):
    draw = random.Random(5)
    path = tmp_path / "text"
    for _ in range(300):
        text = "".join(draw.choices(PIECES, k=draw.randrange(30)))
        path.write_text(text, newline="")
        with sentences(None, path) as source:
            found = list(source.texts)
            assert source.done == source.size == path.stat().st_size
        expected = split_lines(text)
        expected[:1] = [line.removeprefix("\ufeff") for line in expected[:1]]
        assert found == expected


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still unless it is moved."""
    clock = SimpleNamespace(now=1000.0)
    monkeypatch.setattr(texts.time, "monotonic", lambda: clock.now)
    return clock


@pytest.fixture
def screen(monkeypatch, request):
    """The console of progress: a terminal if the test asks for one."""
    terminal = getattr(request, "param", False)
    console = Console(
        file=io.StringIO(),
        force_terminal=terminal,
        force_interactive=terminal,
        width=80,
    )
    monkeypatch.setattr(progress, "progress_console", lambda: console)
    return console


def test_a_file_gets_a_line_a_minute_without_control_codes(clock, screen):
    with LineProgress(10_000) as bar:
        bar.update(100, 1000)  # compiled, which says nothing about the others
        for lines in range(110, 501, 10):
            clock.now += 4.0
            bar.update(lines, 10 * lines)
    assert screen.file.getvalue().splitlines() == [
        "25%, 250 lines, 2.5 lines/s, 5:00 left",
        "40%, 400 lines, 2.5 lines/s, 4:00 left",
    ]


def test_the_length_of_a_pipe_is_not_known(clock, screen):
    with LineProgress(None, "name") as bar:
        bar.update(32, 320)
        clock.now += 64.0
        bar.update(96, 960)
    assert screen.file.getvalue() == "name: 96 lines, 1.0 lines/s\n"


@pytest.mark.parametrize("size", [None, 0, 1000])
@pytest.mark.parametrize("screen", [True], indirect=True)
def test_a_terminal_gets_a_bar_that_is_erased(clock, screen, size):
    with LineProgress(size) as bar:
        bar.update(32, 0)
        clock.now += 2.0
        bar.update(96, size or 0)
        bar._bar._bar.refresh()
    written = screen.file.getvalue()
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", written)
    assert "96 lines, 32.0 lines/s" in plain
    assert max(map(len, re.split(r"[\r\n]+", plain))) <= 80
    assert written.rstrip().endswith("\x1b[2K")
    assert written.count("\x1b[?25h") == written.count("\x1b[?25l") > 0


def test_a_resumed_text_is_as_fast_as_it_is_now(clock, screen):
    with LineProgress(100_000) as bar:
        bar.update(5000, 50_000)
        clock.now += 100.0
        bar.update(6000, 60_000)
    assert screen.file.getvalue() == "60%, 6,000 lines, 10.0 lines/s, 6:40 left\n"
