"""Files of translations: whole or missing, and continued where they ended."""

import io
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from keras_attnvariants.cli.outputs import LineWriter
from keras_attnvariants.cli.outputs import PartialFile
from keras_attnvariants.cli.outputs import output_to

TEXTS = [f"text {number}" for number in range(10)]
SETTINGS = {"--beam-size": 4, "--source-tag": None}


def shout(texts):
    return [text.upper() for text in texts]


def interrupted(path, count=4, more=""):
    """Leaves the file of a process that was killed after some lines."""
    partial = PartialFile(path, SETTINGS, resume=False)
    if count:
        partial.write(TEXTS[:count], shout(TEXTS[:count]))
    partial.file.write(more)
    partial.file.close()


def resumed(path, texts=TEXTS, settings=SETTINGS):
    """Continues as another process does; returns the number of lines that were left."""
    with output_to(path, settings, resume=True) as writer:
        rest = list(writer.rest(texts))
        writer.write(rest, shout(rest))
    return len(rest)


def names(folder):
    return sorted(entry.name for entry in folder.iterdir())


def text_of(lines):
    return "".join(f"{line}\n" for line in lines)


def test_lines_of_a_stream():
    stream = io.StringIO()
    LineWriter(stream).write(["a", "b"], ["one\u2028line", ""])
    assert stream.getvalue() == "one line\n\n"


def test_no_line_controls_a_terminal():
    stream = io.StringIO()
    LineWriter(stream).write(["a"], ["\x1b[2Jä\x07\x9b\t\u200dか\x7f"])
    assert stream.getvalue() == "[2Jä\u200dか\n"


def test_a_file_appears_when_it_is_complete(tmp_path):
    path = tmp_path / "out"
    path.write_text("old")
    path.chmod(0o600)
    with output_to(path, SETTINGS, resume=False) as writer:
        writer.write(TEXTS, shout(TEXTS))
        assert path.read_text() == "old"
        assert (tmp_path / "out.part").read_text() == text_of(shout(TEXTS))
        assert (tmp_path / "out.part.json").stat().st_size < 1000
    assert path.read_text() == text_of(shout(TEXTS))
    assert names(tmp_path) == ["out"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("more", ["", "HALF A LI", "A LINE THAT DOES NOT COUNT\n"])
def test_the_rest_is_translated(tmp_path, more):
    path = tmp_path / "out"
    interrupted(path, 4, more)
    (tmp_path / "tmp-out.part.json-1234").touch()
    assert names(tmp_path)[:2] == ["out.part", "out.part.json"]
    assert resumed(path) == 6
    assert path.read_text() == text_of(shout(TEXTS))
    assert names(tmp_path) == ["out"]


def test_nothing_to_continue(tmp_path):
    assert resumed(tmp_path / "new") == 10
    interrupted(tmp_path / "begun", 0)
    assert resumed(tmp_path / "begun") == 10
    # Killed between the last two steps.
    interrupted(tmp_path / "done", 10)
    (tmp_path / "done.part").rename(tmp_path / "done")
    assert resumed(tmp_path / "done") == 10
    assert names(tmp_path) == ["begun", "done", "new"]


def test_without_resume_all_is_translated_again(tmp_path):
    path = tmp_path / "out"
    interrupted(path, 4)
    with output_to(path, SETTINGS, resume=False) as writer:
        assert list(writer.rest(TEXTS)) == TEXTS
        writer.write(TEXTS[:1], ["ANOTHER"])
    assert path.read_text() == "ANOTHER\n"


@pytest.mark.parametrize(
    ("settings", "difference"),
    [
        ({"--beam-size": 5}, "Received: --beam-size 5 instead of 4"),
        ({"--beam-size": None}, "Received: --beam-size none instead of 4"),
        ({"--source-tag": "<x>"}, "Received: --source-tag <x> instead of none"),
        ({"--model with sha256": "0a"}, "--model with sha256 0a instead of none"),
    ],
)
def test_other_settings(tmp_path, settings, difference):
    path = tmp_path / "out"
    interrupted(path)
    before = (path.with_name("out.part").read_text(), names(tmp_path))
    with pytest.raises(ValueError, match=difference):
        resumed(path, settings=SETTINGS | settings)
    assert (path.with_name("out.part").read_text(), names(tmp_path)) == before
    assert resumed(path) == 6


@pytest.mark.parametrize("texts", [TEXTS[1:], TEXTS[:3], [], ["x", *TEXTS[1:]]])
def test_another_input(tmp_path, texts):
    path = tmp_path / "out"
    interrupted(path)
    with pytest.raises(ValueError, match="The input is not the same .* 4 lines"):
        resumed(path, texts)
    assert resumed(path) == 6


def test_what_was_changed_meanwhile(tmp_path):
    path = tmp_path / "out"
    interrupted(path)
    os.truncate(tmp_path / "out.part", 7)
    with pytest.raises(ValueError, match="out.part was cut short"):
        resumed(path)
    note = tmp_path / "out.part.json"
    for damaged, message in (
        ("{", "cut short or not JSON"),
        ("[]", "is not a valid Note: remove it"),
    ):
        note.write_text(damaged)
        with pytest.raises(ValueError, match=message):
            resumed(path)
    note.write_text(json.dumps({"lines": 1}))
    with pytest.raises(ValueError, match="is not a valid Note: remove it"):
        resumed(path)


def test_two_processes_do_not_write_one_file(tmp_path):
    path = tmp_path / "out"
    code = "\n".join(
        (
            "from pathlib import Path; import sys",
            "from keras_attnvariants.cli.outputs import PartialFile",
            "partial = PartialFile(Path(sys.argv[1]), {}, False)",
            "print('here', flush=True); input()",
        )
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with process:
        assert process.stdout.readline() == b"here\n"
        with pytest.raises(OSError, match="Another process is writing.*out.part"):
            resumed(path)
        process.kill()
    assert resumed(path, settings={}) == 10


def test_an_error_before_the_first_line_leaves_nothing(tmp_path):
    path = tmp_path / "out"
    with pytest.raises(KeyError), output_to(path, SETTINGS, resume=False):
        raise KeyError
    assert names(tmp_path) == []


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError("no space left")])
def test_an_interruption_says_how_to_continue(tmp_path, capsys, error):
    path = tmp_path / "out"
    with pytest.raises((KeyboardInterrupt, OSError)):
        with output_to(path, SETTINGS, False) as writer:
            writer.write(TEXTS[:4], shout(TEXTS[:4]))
            raise error
    assert f"4 lines are in {path}.part: --resume" in capsys.readouterr().err
    assert resumed(path) == 6


def test_an_open_file_keeps_what_it_has(tmp_path):
    with (tmp_path / "out").open("wb", buffering=0) as file:
        file.write(b"first\n")
        path = Path(f"/proc/self/fd/{file.fileno()}")
        with output_to(path, SETTINGS, resume=False) as writer:
            writer.write(["a"], ["A"])
        file.write(b"last\n")
    assert (tmp_path / "out").read_text() == "first\nA\nlast\n"


def test_a_pipe_is_written_at_once(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with output_to(path, SETTINGS, resume=False) as writer:
        writer.write(["a"], ["A"])
        assert os.read(reader, 100) == b"A\n"
    os.close(reader)
    assert names(tmp_path) == ["pipe"]
