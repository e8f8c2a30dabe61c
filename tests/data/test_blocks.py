import pytest

from keras_attnvariants.data import blocks as module
from keras_attnvariants.data.blocks import blocks


@pytest.mark.parametrize("count", [0, 1, 7, 8, 20])
def test_blocks_follow_one_another(monkeypatch, count):
    monkeypatch.setattr(module, "BLOCK", 7)
    found = [range(count)[block] for block in blocks(count)]
    assert [i for part in found for i in part] == list(range(count))
    assert all(1 <= len(part) <= 7 for part in found)
