"""Lines end at newlines and nowhere else."""

import io
import re
from pathlib import Path

import pytest

import keras_attnvariants
from keras_attnvariants.utils.lines import byte_lines
from keras_attnvariants.utils.lines import on_one_line
from keras_attnvariants.utils.lines import split_lines
from keras_attnvariants.utils.lines import text_lines

# All characters that end a line for `str.splitlines`, except newlines.
OTHER_ENDS = "\v\f\x1c\x1d\x1e\x85\u2028\u2029"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", []),
        ("\n", [""]),
        ("a", ["a"]),
        ("a\r\n\nb\r\r\n", ["a", "", "b\r"]),
        (OTHER_ENDS + "\n" + OTHER_ENDS + "\rx", [OTHER_ENDS, OTHER_ENDS + "\rx"]),
    ],
)
def test_only_newlines_end_lines(text, lines):
    assert list(text_lines(io.BytesIO(text.encode()))) == lines
    assert split_lines(text) == lines


def test_a_byte_order_mark_is_dropped_once():
    stream = io.BytesIO("\ufeffa\n\ufeffb".encode())
    assert list(text_lines(stream)) == ["a", "\ufeffb"]


def test_a_line_without_end_is_not_read_to_its_end():
    stream = io.BytesIO(b"abc\r\nabcd\nabc\n" + b"x" * 1000)
    lines = byte_lines(stream, longest=4)
    assert [next(lines) for _ in range(3)] == [b"abc", b"abcd", b"abc"]
    with pytest.raises(ValueError, match="Line 4 is longer than 4 bytes.*Received"):
        next(lines)
    assert stream.tell() < 30


def test_a_text_fits_on_one_line():
    assert on_one_line(f"a{'b'.join(OTHER_ENDS)}c\r\nd").count(" ") == 9
    assert len((on_one_line(f"a{OTHER_ENDS}\r\n") + "x").splitlines()) == 1


def test_no_other_module_splits_lines_in_a_way_of_its_own():
    """Python's own ways split at more than newlines."""
    package = Path(keras_attnvariants.__file__).parent
    own = re.compile(r"\.(splitlines|readlines)\(|TextIOWrapper")
    found = {
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        if own.search(path.read_text("utf-8"))
    }
    assert found == {"utils/lines.py"}
