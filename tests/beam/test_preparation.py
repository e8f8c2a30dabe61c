"""Corpora prepared by Beam equal those of one process, byte for byte."""

from collections import defaultdict
from pathlib import Path

import keras
import pytest

from keras_attnvariants import beam as package
from keras_attnvariants.beam import engine
from keras_attnvariants.beam import preparation
from keras_attnvariants.data import TokenizedCorpus
from keras_attnvariants.data import load_corpus
from keras_attnvariants.data.cleaning import CleaningJob
from keras_attnvariants.data.cleaning import clean_splits
from keras_attnvariants.data.pipeline import write_tokens
from keras_attnvariants.data.splits import ParallelFiles
from keras_attnvariants.data.vocabularies import learn_vocabulary
from tests.beam.conftest import HERE
from tests.beam.conftest import SHARDS
from tests.beam.conftest import files_of
from tests.data.toy import write_pairs


def job_of(folder, output, unique=True):
    output.mkdir(exist_ok=True)
    shards = [
        ParallelFiles(
            *(folder / f"train-{i:05}-of-{SHARDS:05}.{la}" for la in languages)
        )
        for i, languages in enumerate([("en", "de")] * SHARDS)
    ]
    files = ParallelFiles(output / "train.en", output / "train.de")
    return CleaningJob("train", shards, files, 2000, keep_bad=False, unique=unique)


def test_shards_give_what_one_process_gives(folder, tmp_path):
    [expected] = clean_splits([job := job_of(folder, tmp_path / "one")])
    shards = preparation.shards_of([job_of(folder, tmp_path / "parts")])
    places = defaultdict(list)
    for number in reversed(range(SHARDS)):  # in any order
        for key, place in preparation.keys_of(number, shards):
            places[key].append(place)
    repeats = defaultdict(list)
    for found in places.values():
        for number, place in sorted(found)[1:]:
            repeats[number].append(place)
    counts = [
        preparation.clean_shard(shard, repeats[number])
        for number, shard in enumerate(shards)
    ]
    for side, file in enumerate(job.files):
        parts = [shard.files[side].read_bytes() for shard in shards]
        assert b"".join(parts) == file.read_bytes()
    written = sum(of_shard["pairs written"] for of_shard in counts)
    assert written == expected.written == 60
    found = sum(of_shard["pairs repeated"] for of_shard in counts)
    assert found == expected.problems["repeated"] == 6


def test_a_shard_is_written_once_though_two_workers_do(folder, tmp_path):
    [shard, *_] = preparation.shards_of([job_of(folder, tmp_path / "parts", False)])
    assert preparation.clean_shard(shard, []) == preparation.clean_shard(shard, [])
    names = {path.name for path in shard.files.source.parent.iterdir()}
    assert names == {"source", "target", "report.json", "manifest.json"}


def test_equal_pairs_of_two_splits_are_not_repeated(folder, tmp_path):
    job = job_of(folder, tmp_path / "parts")
    shards = preparation.shards_of(
        [
            job._replace(shards=job.shards[:1]),
            job._replace(split="training", shards=job.shards[:1]),
        ]
    )
    keys = [{key for key, _ in preparation.keys_of(n, shards)} for n in (0, 1)]
    assert not keys[0] & keys[1]
    assert shards[0].files != shards[1].files


def test_parts_give_the_files_of_one_process(folder, tmp_path, tokenizer):
    corpus = load_corpus(folder, "en", "de", cache_dir=tmp_path / "cache")
    files = corpus.files("train")
    write_tokens(files, tokenizer, tmp_path)
    # Some parts contain no line: the longest line has more bytes than a part.
    todo = engine.parts_of(files.source, tmp_path / "part", 40)
    lines = []
    for part in todo:
        found = preparation.tokenize_part(part, tokenizer.model_bytes, False)
        lines.append(found["lines tokenised"])
        # TensorFlow forgets tokenizers at a new seed.
        keras.utils.set_random_seed(1)
    assert 0 in lines
    assert sum(lines) == corpus.reports["train"].written
    preparation.join_tokens([Path(part.output) for part in todo], tmp_path / "joined")
    for ending in (".ids", ".offsets"):
        expected = (tmp_path / f"source{ending}").read_bytes()
        assert (tmp_path / f"joined{ending}").read_bytes() == expected
    assert not list(tmp_path.glob("*part*"))


def by_one_process(folder, cache, vocabulary_size=70, **options):
    corpus = load_corpus(folder, "en", "de", cache_dir=cache, **options)
    tokens = TokenizedCorpus(corpus, learn_vocabulary(corpus, vocabulary_size))
    for split in corpus.splits:
        tokens.split(split)
    return corpus


@pytest.fixture
def small_parts(monkeypatch):
    monkeypatch.setattr("keras_attnvariants.beam.preparation.PART_BYTES", 500)


@pytest.mark.parametrize("unique", [False, True])
def test_the_cache_is_that_of_one_process(beam, small_parts, folder, tmp_path, unique):
    corpus = by_one_process(folder, tmp_path / "one", unique=unique)
    tokens = package.prepare(
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
    package.prepare(
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
    tokens = package.prepare(folder, "en", "de", tokenizer, **options)
    assert tokens.tokenizer is tokenizer


def test_shards_of_unequal_lines_are_refused_in_one_line(beam, folder, tmp_path):
    name = f"train-00001-of-{SHARDS:05}"
    (folder / f"{name}.de").write_text("x\n" * 9)
    message = f"Received: 24 lines in .*{name}.en and 9 lines in .*{name}.de$"
    cache = tmp_path / "cache"
    with pytest.raises(ValueError, match=message):
        package.prepare(
            folder, "en", "de", 70, options=HERE, cache_dir=cache, unique=True
        )
    assert not any(path.is_file() for path in cache.rglob("*"))


def test_a_missing_shard_is_refused(beam, folder, tmp_path):
    (folder / f"train-00002-of-{SHARDS:05}.de").unlink()
    with pytest.raises(
        ValueError, match=r"there is no train-00002-of-00003\.de\. Received"
    ):
        package.prepare(folder, "en", "de", 70, cache_dir=tmp_path)


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
        package.prepare(tmp_path / name, "en", "de", tokenizer)
