"""Lines, chunks and the order of translations."""

import subprocess
import sys

import pytest

from keras_attnvariants.cli import texts


def test_chunks_grow_up_to_the_largest():
    sizes = [len(chunk) for chunk in texts.chunks(map(str, range(22)), 2, 8)]
    assert sizes == [2, 4, 8, 8]
    assert list(texts.chunks([])) == []


def test_translations_keep_their_order_and_come_early():
    read, lists = [], []

    def lines():
        for number in range(100):
            read.append(number)
            yield f"line {number}"

    def translate(chunk):
        lists.append(len(chunk))
        return [text.upper() for text in chunk]

    found = texts.translated(translate, lines())
    assert next(found) == "LINE 0"
    assert len(read) == texts.FIRST_CHUNK
    assert list(found) == [f"LINE {number}" for number in range(1, 100)]
    assert lists == [32, 64, 4]


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


def test_one_line_at_a_time():
    lists = []

    def translate(chunk):
        lists.append(len(chunk))
        return chunk

    assert list(texts.translated(translate, "abc", chunk=1)) == ["a", "b", "c"]
    assert lists == [1, 1, 1]


def test_progress_is_on_standard_error(capsys):
    translate = texts.with_progress(lambda chunk: chunk, "Translating")
    assert translate(["a", "b"]) == ["a", "b"]
    assert capsys.readouterr().out == ""
