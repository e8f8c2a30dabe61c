"""Splits in several files."""

import pytest

from keras_attnvariants.data import load_corpus
from tests.data.toy import toy_pairs
from tests.data.toy import write_pairs

PAIRS = toy_pairs(30)
NAMES = [f"train-0000{i}-of-00003" for i in range(3)]


@pytest.fixture
def folder(tmp_path):
    """A corpus in three shards."""
    path = tmp_path / "toy"
    for i, name in enumerate(NAMES):
        write_pairs(path, name, PAIRS[10 * i : 10 * i + 10])
    write_pairs(path, "valid", PAIRS[:5])
    return path


def load(folder, **options):
    return load_corpus(folder, "en", "de", folder.parent / "cache", **options)


def test_shards_are_one_split_in_their_order(folder, tmp_path):
    write_pairs(tmp_path / "whole", "train", PAIRS)
    corpus = load(folder)
    assert list(corpus.splits) == ["validation", "train"]
    assert corpus.read_lines("train") == load(tmp_path / "whole").read_lines("train")
    assert corpus.reports["train"].read == 30


def test_pairs_that_came_before_are_left_out_if_asked(folder):
    write_pairs(folder, NAMES[2], [*PAIRS[5:8], PAIRS[29], PAIRS[29]])
    write_pairs(folder, "valid", PAIRS[:5] * 2)
    corpus, whole = load(folder, unique=True), load(folder)
    assert list(zip(*corpus.read_lines("train"), strict=True)) == [
        *PAIRS[:20],
        PAIRS[29],
    ]
    assert corpus.reports["train"].problems == {"repeated": 4}
    assert len(corpus.read_lines("validation")[0]) == 10
    assert whole.reports["train"].written == 25
    assert whole.folder != corpus.folder


def test_repeated_lines_of_a_table_are_left_out_too(tmp_path):
    text = "".join(f"{source}\t{target}\n" for source, target in PAIRS * 2)
    (tmp_path / "toy.tsv").write_text(text)
    corpus = load(tmp_path / "toy.tsv", unique=True)
    assert sum(report.written for report in corpus.reports.values()) < 60
    lines = corpus.read_lines("train")[0]
    assert len(lines) == len(set(lines))


def test_alignments_are_of_all_shards(folder, tmp_path):
    (tmp_path / "links").write_text("".join(f"{i % 2}-0\n" for i in range(30)))
    corpus = load(folder, alignments=tmp_path / "links")
    assert corpus.alignments.read_text().split() == ["0-0", "1-0"] * 15
    with pytest.raises(ValueError, match="leave none out with `unique`"):
        load(folder, alignments=tmp_path / "links", unique=True)


def test_a_shard_that_is_shorter_than_its_twin_is_refused(folder):
    (folder / f"{NAMES[1]}.de").write_text("x\n" * 9)
    message = f"Received: 10 lines in .*{NAMES[1]}.en and 9 lines in .*{NAMES[1]}.de$"
    with pytest.raises(ValueError, match=message):
        load(folder)


def test_a_shard_without_its_twin_is_refused(folder):
    (folder / f"{NAMES[1]}.de").unlink()
    message = f"Received: 10 lines in .*{NAMES[1]}.en and no .*{NAMES[1]}.de$"
    with pytest.raises(ValueError, match=message):
        load(folder)


@pytest.mark.parametrize(
    ("made", "removed", "message"),
    [
        ([], [0], "there is no train-00000-of-00003"),
        ([], [2], "there is no train-00002-of-00003, .*Received: 2 shards"),
        (["train-00003-of-00003"], [], "there must be no train-00003-of-00003"),
        (["train"], [], "Received: train and train-…-of-00003"),
        (["train-0-of-1"], [], "Received: train-…-of-00003 and train-…-of-1"),
    ],
)
def test_sets_of_shards_that_are_not_whole_are_refused(folder, made, removed, message):
    for name in made:
        write_pairs(folder, name, PAIRS)
    for i in removed:
        for language in ("en", "de"):
            (folder / f"{NAMES[i]}.{language}").unlink()
    with pytest.raises(ValueError, match=message):
        load(folder)
