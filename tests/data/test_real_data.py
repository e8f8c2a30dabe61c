"""Results on the development corpora; skipped where there are none."""

import os
import subprocess
import sys

import numpy as np
import pytest

from keras_attnvariants.data import BatchPlan
from keras_attnvariants.data import TokenizedCorpus
from keras_attnvariants.data import Tokenizer
from keras_attnvariants.data import load_corpus
from tests.data.test_batching import padding_share
from tests.data.test_tokenizer import ODD_LINES


@pytest.fixture(scope="module")
def multi30k(data_folder, tmp_path_factory):
    cache = tmp_path_factory.mktemp("cache")
    return load_corpus(data_folder / "multi30k", "en", "de", cache_dir=cache)


@pytest.fixture(scope="module")
def tokens(multi30k):
    tokenizer = Tokenizer.train(multi30k.splits["train"], vocabulary_size=8000)
    return TokenizedCorpus(multi30k, tokenizer)


def test_splits(multi30k):
    assert {name: r.written for name, r in multi30k.reports.items()} == {
        "train": 29_000,
        "validation": 1_014,
        "test2016": 1_000,
    }
    assert not any(report.problems for report in multi30k.reports.values())


@pytest.mark.parametrize(
    ("folder", "source", "target"),
    [
        ("news-de-en", "de", "en"),
        ("tanaka-en-ja", "ja", "en"),
        ("tatoeba-de-en", "en", "de"),
        ("gold-align-grc-en", "grc", "en"),
        ("scitldr-a", "source", "target"),
    ],
)
def test_every_folder_loads(data_folder, tmp_path, folder, source, target):
    corpus = load_corpus(data_folder / folder, source, target, cache_dir=tmp_path)
    assert list(corpus.splits) == ["train", "validation", "test"]
    for name, report in corpus.reports.items():
        assert report.written >= 0.9 * report.read
        assert len(corpus.read_lines(name)[0]) == report.written


def test_little_padding_and_few_shapes(tokens):
    source, target = (side.lengths for side in tokens.split("train"))
    for batch_tokens in (4096, 8192):
        plan = tokens.plan(batch_tokens=batch_tokens)
        assert padding_share(plan, source, target + 1) < 0.1
        assert len(plan.shapes) <= 32
        assert plan.num_skipped == 0


def test_random_batches_would_pad_much_more(tokens):
    source, target = (side.lengths for side in tokens.split("train"))
    planned = padding_share(tokens.plan(), source, target + 1)
    order = np.random.default_rng(0).permutation(len(source))[: 226 * 128]
    source, target = source[order].reshape(-1, 128), target[order].reshape(-1, 128)
    positions = 128 * (source.max(axis=1) + target.max(axis=1)).sum()
    share = 1 - (source.sum() + target.sum()) / positions
    assert share > 3 * planned


def test_tf_text_gives_the_ids_of_sentencepiece(tokens):
    lines = (ODD_LINES + list(tokens.corpus.read_lines("test2016")[1]))[:1000]
    ids = tokens.tokenizer.tf_tokenizer().tokenize(lines)
    assert len(lines) == 1000
    assert ids.to_list() == tokens.tokenizer.encode(lines)


def test_text_comes_back(tokens):
    for side in tokens.corpus.read_lines("test2016"):
        decoded = tokens.tokenizer.decode(tokens.tokenizer.encode(side))
        same = sum(a == b for a, b in zip(decoded, side, strict=True))
        # SentencePiece normalizes; a few lines have double spaces or odd characters.
        assert same >= 0.98 * len(side)


def test_japanese(data_folder, tmp_path):
    corpus = load_corpus(data_folder / "tanaka-en-ja", "en", "ja", cache_dir=tmp_path)
    tokenizer = Tokenizer.train(
        corpus.splits["train"], vocabulary_size=4000, character_coverage=0.9995
    )
    sentences = corpus.read_lines("test")[1]
    ids = tokenizer.encode(sentences)
    unknown = sum(row.count(tokenizer.unk_id) for row in ids)
    assert unknown < 0.01 * sum(map(len, ids))
    assert tokenizer.tf_tokenizer().tokenize(sentences).to_list() == ids


def test_plans_of_large_corpora_are_quick(data_folder):
    random = np.random.default_rng(0)
    source = 1 + random.poisson(random.gamma(3, 8, 1_000_000))
    plan = BatchPlan(source, source + 2, batch_tokens=8192, max_length=256)
    assert plan.num_pairs > 990_000
    assert padding_share(plan, source, source + 2) < 0.1


@pytest.mark.slow
def test_without_the_corpora_these_tests_skip_with_a_reason(tmp_path):
    arguments = ["-q", "-rs", "-p", "no:cacheprovider", "-k", "test_splits", __file__]
    result = subprocess.run(
        [sys.executable, "-m", "pytest", *arguments],
        capture_output=True,
        text=True,
        env=os.environ | {"KAV_DATA": str(tmp_path / "absent")},
        cwd=os.path.dirname(os.path.dirname(os.path.dirname(__file__))),
    )
    assert result.returncode == 0, result.stdout
    assert "1 skipped" in result.stdout
    assert "KAV_DATA names no folder" in result.stdout
