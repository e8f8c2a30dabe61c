"""What Beam prepares is what one process prepares, byte for byte."""

import pytest

from keras_attnvariants import beam as room
from keras_attnvariants.data import TokenizedCorpus
from keras_attnvariants.data import load_corpus
from keras_attnvariants.data.vocabularies import learn_vocabulary
from tests.beam.conftest import HERE
from tests.beam.conftest import SHARDS
from tests.beam.conftest import files_of
from tests.data.toy import write_pairs


def by_one_process(folder, cache, vocabulary_size=70, **options):
    corpus = load_corpus(folder, "en", "de", cache_dir=cache, **options)
    tokens = TokenizedCorpus(corpus, learn_vocabulary(corpus, vocabulary_size))
    for split in corpus.splits:
        tokens.split(split)
    return corpus


@pytest.fixture
def small_parts(monkeypatch):
    monkeypatch.setattr("keras_attnvariants.beam.parts.PART_BYTES", 500)


@pytest.mark.parametrize("unique", [False, True])
def test_the_cache_is_that_of_one_process(beam, small_parts, folder, tmp_path, unique):
    corpus = by_one_process(folder, tmp_path / "one", unique=unique)
    tokens = room.prepare(
        folder,
        "en",
        "de",
        70,
        options=HERE,
        cache_dir=tmp_path / "beam",
        unique=unique,
    )
    assert files_of(tmp_path / "beam") == files_of(tmp_path / "one")
    assert tokens.corpus.reports == corpus.reports
    assert corpus.reports["train"].problems.get("repeated") == (6 if unique else None)
    first = next(tokens.training_dataset(256).as_numpy_iterator())
    assert (first[2].sum(axis=1) > 0).any()


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_so_it_is_with_processes(beam, small_parts, folder, tmp_path, workers):
    by_one_process(folder, tmp_path / "one", unique=True)
    room.prepare(
        folder,
        "en",
        "de",
        70,
        workers=workers,
        cache_dir=tmp_path / "beam",
        unique=True,
    )
    assert files_of(tmp_path / "beam") == files_of(tmp_path / "one")


def test_a_given_tokenizer_is_used(beam, folder, tmp_path, tokenizer):
    options = {"options": HERE, "cache_dir": tmp_path / "cache"}
    tokens = room.prepare(folder, "en", "de", tokenizer, **options)
    assert tokens.tokenizer is tokenizer


def test_shards_of_unequal_lines_are_refused_in_one_line(beam, folder, tmp_path):
    name = f"train-00001-of-{SHARDS:05}"
    (folder / f"{name}.de").write_text("x\n" * 9)
    message = f"Received: 24 lines in .*{name}.en and 9 lines in .*{name}.de$"
    cache = tmp_path / "cache"
    with pytest.raises(ValueError, match=message):
        room.prepare(folder, "en", "de", 70, options=HERE, cache_dir=cache, unique=True)
    assert not any(path.is_file() for path in cache.rglob("*"))


def test_a_missing_shard_is_refused(beam, folder, tmp_path):
    (folder / f"train-00002-of-{SHARDS:05}.de").unlink()
    with pytest.raises(ValueError, match="24 lines in .*en and no .*00003.de$"):
        room.prepare(folder, "en", "de", 70, cache_dir=tmp_path)


@pytest.mark.parametrize(
    ("name", "tokenizer", "message"),
    [
        ("train.en", 70, "`folder` must be a folder of text files"),
        ("", "spm.model", "`tokenizer` must be a positive integer"),
    ],
)
def test_wrong_calls(monkeypatch, tmp_path, name, tokenizer, message):
    monkeypatch.setattr("keras_attnvariants.beam.engine.check_beam", lambda: None)
    write_pairs(tmp_path, "train", [("a", "b")])
    with pytest.raises(ValueError, match=message):
        room.prepare(tmp_path / name, "en", "de", tokenizer)
