"""Sentences to translate, and the parts of a file."""

import random

import pytest

from keras_attnvariants.cli.inputs import Shard
from keras_attnvariants.cli.inputs import sentences
from keras_attnvariants.utils import lines

PIECES = ("a", "Bär ", "\n", "\n\n", "\r\n", "\ufeff", "\u2028", "\x85", "long " * 9)


def test_shards_of_any_file_are_its_lines(tmp_path):
    draw = random.Random(5)
    path = tmp_path / "text"
    for _ in range(300):
        path.write_text("".join(draw.choices(PIECES, k=draw.randrange(30))), newline="")
        with sentences(None, path, None) as source:
            whole = list(source.texts)
            assert source.stream.done == source.size == path.stat().st_size
        for count in (1, 2, 3, 8, 200):
            parts, sizes = [], 0
            for number in range(1, count + 1):
                with sentences(None, path, Shard(number, count)) as source:
                    parts += source.texts
                    assert source.stream.done >= source.size
                    sizes += source.stream.done
            assert parts == whole
            assert sizes == path.stat().st_size


def test_shards_are_of_about_equal_size(tmp_path):
    path = tmp_path / "text"
    path.write_text("".join(f"line {number}\n" for number in range(10_000)))
    counts = []
    for number in range(1, 9):
        with sentences(None, path, Shard(number, 8)) as source:
            counts.append(len(list(source.texts)))
    assert sum(counts) == 10_000
    assert max(counts) - min(counts) < 150


def test_a_long_line_is_of_one_shard(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "LONGEST_LINE", 16)
    path = tmp_path / "text"
    path.write_text("x" * 1000 + "\nend\n")
    found = []
    for number in range(1, 6):
        with sentences(None, path, Shard(number, 5)) as source:
            found.append([len(text) for text in source.texts])
    assert found == [[1000], [], [], [], [3]]


@pytest.mark.parametrize(
    "text", ["", "3", "0/8", "9/8", "3/0", "-1/8", "3/8/9", "a/b", "1/99999999", "٣/٨"]
)
def test_what_is_no_shard(text):
    with pytest.raises(ValueError, match="--shard must be a number, a slash"):
        Shard.parse(text)


def test_a_shard_by_its_name():
    assert Shard.parse("3/8") == Shard(3, 8)
    assert [Shard(n, 3).bounds(10) for n in (1, 2, 3)] == [(0, 3), (3, 6), (6, 10)]
