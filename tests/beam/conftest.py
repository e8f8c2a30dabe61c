"""A corpus in shards, with bad and repeated lines."""

import importlib.util

import pytest

from keras_attnvariants.data import Tokenizer
from tests.data.toy import toy_pairs
from tests.data.toy import write_pairs

PAIRS = toy_pairs(60)
SHARDS = 3
# Faults of Beam itself are not tested here.
HERE = ["--runner=FnApiRunner", "--direct_running_mode=in_memory"]


@pytest.fixture
def beam():
    """Skips tests that run pipelines if Beam is not installed."""
    if importlib.util.find_spec("apache_beam") is None:
        pytest.skip("Apache Beam is not installed: it needs an environment of its own")


@pytest.fixture(scope="session")
def tokenizer():
    return Tokenizer.train([text for pair in PAIRS for text in pair], 70)


@pytest.fixture
def folder(tmp_path):
    """Three shards with repeated pairs, within a shard and between them."""
    path = tmp_path / "toy"
    for i in range(SHARDS):
        pairs = PAIRS[20 * i : 20 * i + 20]
        pairs = [*pairs, ("", "x"), PAIRS[3], pairs[-1], ("a dog", "x" * 3000)]
        write_pairs(path, f"train-{i:05}-of-{SHARDS:05}", pairs)
    write_pairs(path, "valid", [*PAIRS[:5], PAIRS[0], ("", "")])
    return path


def files_of(folder):
    """The content of all files by name."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
