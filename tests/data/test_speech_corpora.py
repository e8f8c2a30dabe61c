"""Corpora of recordings: cleaned, as token files, and as batches."""

import numpy as np
import pytest

from keras_attnvariants.data import TokenizedCorpus
from keras_attnvariants.data import Tokenizer
from keras_attnvariants.data import load_corpus
from keras_attnvariants.data.audio import AudioTokenizer
from tests.data import recordings
from tests.data.recordings import tone


@pytest.fixture
def folder(tmp_path):
    return recordings.corpus(tmp_path / "corpus")


def load(folder, **options):
    cache = folder.parent / "cache"
    return load_corpus(folder, cache_dir=cache, task="speech", **options)


def test_bad_recordings_are_counted_and_named(folder):
    (folder / "clips" / "train-1.wav").write_text("no sound")
    (folder / "clips" / "train-2.wav").unlink()
    (folder / "clips" / "test-0.wav").unlink()
    corpus = load(folder)
    report = corpus.reports["train"]
    assert (report.read, report.written) == (4, 2)
    assert report.problems == {"unreadable recording": 2}
    for name in ("train-1.wav", "train-2.wav", "test-0.wav"):
        assert name in corpus.report
    paths, _ = corpus.read_lines("train")
    assert paths == [str(folder / "clips" / f"train-{n}.wav") for n in (0, 3)]
    # Line i of a test split stays line i.
    paths, texts = corpus.read_lines("test")
    assert paths[0] == "" and len(paths) == len(texts) == 4


def test_a_recording_that_changes_is_read_again(folder):
    before = load(folder)
    assert load(folder).folder == before.folder
    recordings.write(folder / "clips" / "train-0.wav", tone(1))
    assert load(folder).folder != before.folder


def test_paths_are_those_of_a_corpus_that_was_moved(folder):
    load(folder)
    moved = folder.rename(folder.with_name("moved"))
    paths, _ = load(moved).read_lines("train")
    assert paths[0] == str(moved / "clips" / "train-0.wav")


def test_alignments_need_texts(folder, tmp_path):
    (tmp_path / "links").write_text("0-0\n" * 4)
    with pytest.raises(ValueError, match="two text files"):
        load(folder, alignments=tmp_path / "links")


def test_batches_hold_whole_positions(folder):
    corpus = load(folder)
    reader = AudioTokenizer(Tokenizer.train(recordings.TEXTS * 3, 24, may_shrink=True))
    tokens = TokenizedCorpus(corpus, reader)
    source, target = tokens.split("train")
    assert isinstance(source.ids, np.memmap)
    assert source.ids.dtype == np.uint16
    paths, texts = corpus.read_lines("train")
    assert [row.tolist() for row in source] == [
        i.tolist() for i in reader.encode(paths)
    ]
    # 0.1, 0.2, 0.3 seconds are 2.5, 5, 7.5 positions of 40 ms.
    plan = tokens.plan("train", batch_tokens=64)
    assert max(shape.source_length for shape in plan.shapes) == 8
    assert tokens.length_ratio() == pytest.approx(
        len(source.ids) / 640 / len(target.ids)
    )
    seen = []
    for inputs, labels, _ in tokens.validation_dataset(64, "train").as_numpy_iterator():
        ids = inputs["source_ids"]
        assert ids.dtype == np.int32
        assert ids.shape[1] % 640 == 0
        for row, label in zip(ids, labels, strict=True):
            if row.any():
                [text] = reader.decode([label])
                seen.append((row[row > 0].tolist(), text))
    expected = zip(reader.encode(paths), texts, strict=True)
    assert sorted(seen) == sorted((ids.tolist(), text) for ids, text in expected)


def test_recordings_that_are_too_long_are_in_no_batch(folder):
    recordings.write(folder / "clips" / "train-0.wav", tone(20))
    reader = AudioTokenizer(Tokenizer.train(recordings.TEXTS * 3, 24, may_shrink=True))
    plan = TokenizedCorpus(load(folder), reader, max_length=100).plan(batch_tokens=256)
    assert (plan.num_pairs, plan.num_skipped) == (3, 1)
