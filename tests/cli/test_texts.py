"""Chunks of lines, and their stream from input to output."""

import subprocess
import sys

import pytest

from keras_attnvariants.cli import texts


def test_chunks_grow_up_to_the_largest():
    sizes = [len(chunk) for chunk in texts.chunks(map(str, range(22)), 2, 8)]
    assert sizes == [2, 4, 8, 8]
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
    """As a process, because a pipe and memory are the operating system's."""
    program = """
import resource, sys
from pathlib import Path
from keras_attnvariants.cli import app
import keras_attnvariants.cli.translate as command

def shout(texts):
    return [text.upper() for text in texts]

command.check_folders = lambda *_: None
command.translators = lambda *_: {Path(): shout}
try:
    app(["translate", "--model", "."])
finally:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(peak // 1024, file=sys.stderr)
"""

    def peak(count):
        process = subprocess.Popen(
            [sys.executable, "-c", program],
            bufsize=0,  # `communicate` would miss what is read ahead
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
