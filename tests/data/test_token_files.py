"""Rows of integers on disk."""

import numpy as np
import pytest

from keras_attnvariants.data.token_files import TokenFile
from keras_attnvariants.data.token_files import write_rows


@pytest.mark.parametrize("width", [1, 2])
def test_rows_come_back(tmp_path, width):
    rows = [np.arange(width * n).reshape(-1, width) + n for n in (3, 0, 1, 5)]
    blocks = [rows[:1], rows[1:]]
    write_rows(
        ((np.concatenate(b), np.array([len(row) for row in b])) for b in blocks),
        tmp_path / "a",
    )
    file = TokenFile(tmp_path / "a", width)
    for row, found in zip(rows, file, strict=True):
        assert found.reshape(-1, width).tolist() == row.tolist()
    assert file.lengths.tolist() == [3, 0, 1, 5]
    numbers, places, values = file.entries(np.array([3, 1, 0]))
    assert numbers.tolist() == [0] * 5 + [2] * 3
    assert places.tolist() == [0, 1, 2, 3, 4, 0, 1, 2]
    expected = np.concatenate([rows[3], rows[0]])
    assert values.reshape(-1, width).tolist() == expected.tolist()


@pytest.mark.parametrize("width", [1, 2])
def test_rows_without_entries(tmp_path, width):
    write_rows([(np.zeros((0, width)), np.zeros(2, int))], tmp_path / "a")
    file = TokenFile(tmp_path / "a", width)
    assert [len(row) for row in file] == [0, 0]
    assert [len(found) for found in file.entries(np.array([1, 0]))] == [0, 0, 0]


@pytest.mark.parametrize(
    ("longest", "dtype"), [(9, np.uint16), (65534, np.uint16), (65535, np.int32)]
)
def test_lengths_have_room_for_the_longest_line(monkeypatch, tmp_path, longest, dtype):
    monkeypatch.setattr("keras_attnvariants.data.bucketing.BLOCK", 4)
    lengths = [3, 0, 1, 2, 5, longest, 4, 0, 7]
    offsets = np.cumsum([0, *lengths], dtype=np.int64)
    offsets.tofile(tmp_path / "source.offsets")
    np.zeros(offsets[-1], np.int32).tofile(tmp_path / "source.ids")
    found = TokenFile(tmp_path / "source").lengths
    assert found.dtype == dtype
    assert found.tolist() == lengths
