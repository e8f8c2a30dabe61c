"""Splits in folders and in TSV files, and their languages."""

import gzip
import os

import pytest

from keras_attnvariants.data import load_corpus
from keras_attnvariants.data.splits import ParallelFiles
from keras_attnvariants.data.splits import check_languages
from keras_attnvariants.data.splits import find_splits
from tests.data.toy import toy_pairs
from tests.data.toy import write_pairs


@pytest.fixture
def folder(tmp_path):
    def make(*names):
        for name in names:
            (tmp_path / name).touch()
        return tmp_path

    return make


def test_splits_have_their_usual_order(folder):
    path = folder(*(f"{s}.{la}" for s in ("b", "test", "dev", "train") for la in "xy"))
    splits, notes = find_splits(path, ("y", "x"))
    assert list(splits) == ["train", "validation", "test", "b"]
    assert splits["b"] == ParallelFiles(path / "b.y", path / "b.x")
    assert notes == ()


def test_names_may_have_dots_and_gz(folder):
    path = folder("news.2017.en.gz", "news.2017.de", "notes.txt", "README")
    splits, _ = find_splits(path, ("en", "de"))
    assert splits == {
        "news.2017": ParallelFiles(path / "news.2017.en.gz", path / "news.2017.de")
    }


def test_splits_in_one_language_are_noted(folder):
    path = folder("train.en", "train.de", "test.en", "test.fr")
    splits, notes = find_splits(path, ("en", "de"))
    assert list(splits) == ["train"]
    assert notes == ("test: left out, because there is only 'en'",)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("train.en", "train.fr"), "language 'de' .*languages there: en, fr"),
        (("train.en", "train.fr", "test.de", "test.fr"), "No split .* both languages"),
        (("dev.en", "val.en", "dev.de"), "Two files for split 'validation'"),
        ((), "languages there: none"),
    ],
)
def test_what_cannot_be_used_is_refused(folder, names, message):
    with pytest.raises(ValueError, match=f"{message}.*Received: "):
        find_splits(folder(*names), ("en", "de"))


def test_pairs_come_before_the_error_about_their_number(tmp_path):
    (tmp_path / "a").write_bytes(b"1\n2\n")
    (tmp_path / "b").write_bytes(b"x\n")
    pairs = ParallelFiles(tmp_path / "a", tmp_path / "b").pairs()
    assert next(pairs) == (b"1", b"x")
    with pytest.raises(ValueError, match="Received: 2 lines in .* and 1 lines"):
        next(pairs)


PAIRS = toy_pairs(30)


@pytest.fixture
def whole(tmp_path):
    """A corpus with one repeated pair in each split."""
    write_pairs(tmp_path / "toy", "train", [*PAIRS, PAIRS[29]])
    write_pairs(tmp_path / "toy", "valid", PAIRS[:5] * 2)
    return tmp_path / "toy"


def load(path, **options):
    return load_corpus(path, "en", "de", path.parent / "cache", **options)


def test_joined_gzip_files_are_one_split(tmp_path):
    write_pairs(tmp_path / "whole", "train", PAIRS)
    (tmp_path / "toy").mkdir()
    for language in ("en", "de"):
        lines = (tmp_path / f"whole/train.{language}").read_bytes().splitlines(True)
        parts = (gzip.compress(b"".join(part)) for part in (lines[:9], lines[9:]))
        (tmp_path / f"toy/train.{language}.gz").write_bytes(b"".join(parts))
    expected = load(tmp_path / "whole").read_lines("train")
    assert load(tmp_path / "toy").read_lines("train") == expected


def test_pairs_that_came_before_are_left_out_if_asked(whole):
    corpus, every = load(whole, unique=True), load(whole)
    assert list(zip(*corpus.read_lines("train"), strict=True)) == PAIRS
    assert corpus.reports["train"].problems == {"repeated": 1}
    assert len(corpus.read_lines("validation")[0]) == 10
    assert every.reports["train"].written == 31
    assert every.folder != corpus.folder


def test_repeated_lines_of_a_table_are_left_out_too(tmp_path):
    text = "".join(f"{source}\t{target}\n" for source, target in PAIRS * 2)
    (tmp_path / "toy.tsv").write_text(text)
    corpus = load(tmp_path / "toy.tsv", unique=True)
    assert sum(report.written for report in corpus.reports.values()) < 60
    lines = corpus.read_lines("train")[0]
    assert len(lines) == len(set(lines))


def test_alignments_need_a_line_for_each_pair_of_files(whole, tmp_path):
    (tmp_path / "links").write_text("".join(f"{i % 2}-0\n" for i in range(31)))
    corpus = load(whole, alignments=tmp_path / "links")
    assert corpus.alignments.read_text().split() == ["0-0", "1-0"] * 15 + ["0-0"]
    with pytest.raises(ValueError, match="do not use `unique`"):
        load(whole, alignments=tmp_path / "links", unique=True)
    (tmp_path / "table.tsv").write_text("a\tb\n" * 30)
    message = "split 'train' is two text files, .* Received: .*links with 'table'"
    with pytest.raises(ValueError, match=message):
        load(tmp_path / "table.tsv", alignments=tmp_path / "links")


def write_tsv(path, pairs, header=None):
    lines = [header] if header else []
    lines += ["\t".join(pair) for pair in pairs]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def all_pairs(corpus):
    return {
        split: list(zip(*corpus.read_lines(split), strict=True))
        for split in corpus.splits
    }


def test_columns_are_source_and_target(tmp_path, cache):
    path = write_tsv(tmp_path / "toy.tsv", toy_pairs(500))
    splits = all_pairs(load_corpus(path, "en", "de", cache_dir=cache))
    assert list(splits) == ["train", "validation", "test"]
    joined = [pair for pairs in splits.values() for pair in pairs]
    assert sorted(joined) == sorted(toy_pairs(500))
    assert 5 <= len(splits["validation"]) <= 30
    assert 5 <= len(splits["test"]) <= 30


@pytest.mark.parametrize("header", ["en\tde", "de\ten"])
def test_a_header_names_the_columns(tmp_path, cache, header):
    path = write_tsv(tmp_path / "toy.tsv", toy_pairs(500), header)
    english_first = load_corpus(path, "en", "de", cache_dir=cache)
    german_first = load_corpus(path, "de", "en", cache_dir=cache)
    assert all_pairs(english_first) == {
        split: [pair[::-1] for pair in pairs]
        for split, pairs in all_pairs(german_first).items()
    }
    expected = (
        toy_pairs(500) if header == "en\tde" else [p[::-1] for p in toy_pairs(500)]
    )
    assert set(all_pairs(english_first)["train"]) <= set(expected)


def test_a_header_with_other_languages(tmp_path, cache):
    path = write_tsv(tmp_path / "toy.tsv", toy_pairs(5), "en\tfr")
    with pytest.raises(ValueError, match="languages en and fr.*Received: 'en' to 'de'"):
        load_corpus(path, "en", "de", cache_dir=cache)


def test_equal_lines_stay_in_one_split(tmp_path, cache):
    path = write_tsv(tmp_path / "toy.tsv", toy_pairs(500) * 2)
    splits = all_pairs(load_corpus(path, "en", "de", cache_dir=cache))
    assert not set(splits["train"]) & set(splits["test"])
    assert all(pairs.count(pairs[0]) == 2 for pairs in splits.values())


def test_bad_lines_are_reported(tmp_path, cache):
    bad = [("one",), ("a", "b", "c"), ("", "empty")] * 40
    bad = [(*pair[:-1], f"{pair[-1]} {i}") for i, pair in enumerate(bad)]
    path = write_tsv(tmp_path / "toy.tsv", toy_pairs(500) + bad)
    corpus = load_corpus(path, "en", "de", cache_dir=cache)
    totals = {"not two columns": 0, "empty": 0}
    for report in corpus.reports.values():
        for kind, count in report.problems.items():
            totals[kind] += count
    assert totals == {"not two columns": 80, "empty": 40}
    assert sum(report.read for report in corpus.reports.values()) == 620
    assert sum(report.written for report in corpus.reports.values()) == 500


def test_gzip(tmp_path, cache):
    path = write_tsv(tmp_path / "toy.tsv", toy_pairs(500))
    packed = tmp_path / "toy.tsv.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert all_pairs(load_corpus(packed, "en", "de", cache_dir=cache)) == all_pairs(
        load_corpus(path, "en", "de", cache_dir=cache)
    )


def test_empty_file(tmp_path, cache):
    (tmp_path / "toy.tsv").write_text("")
    with pytest.raises(ValueError, match=r"no usable pair.*Received: .*toy\.tsv"):
        load_corpus(tmp_path / "toy.tsv", "en", "de", cache_dir=cache)


def test_codes_of_two_languages():
    check_languages("pt-BR", "zh_Hant")


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        ("", "de", "`source_language` .*must be a language code.*Received: ''"),
        ("en", "d e", "`target_language` .*must be a language code.*Received: 'd e'"),
        ("en", 3, "`target_language` .*must be a language code.*Received: 3"),
        ("en", "en", "must differ. Received: 'en' twice"),
    ],
)
def test_anything_but_a_pair_of_codes_is_refused(source, target, message):
    with pytest.raises(ValueError, match=message):
        check_languages(source, target)


@pytest.mark.parametrize("kind", ["pipe", "folder", "dangling link"])
def test_anything_but_a_file_is_named(tmp_path, cache, kind):
    write_pairs(tmp_path / "toy", "train", toy_pairs(20))
    path = tmp_path / "toy/train.de"
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("nowhere")
    with pytest.raises((ValueError, FileNotFoundError), match="train.de"):
        load_corpus(tmp_path / "toy", "en", "de", cache_dir=cache)


def test_files_may_be_links(tmp_path, cache):
    write_pairs(tmp_path / "toy", "train", toy_pairs(20))
    (tmp_path / "toy/train.de").rename(tmp_path / "german")
    (tmp_path / "toy/train.de").symlink_to(tmp_path / "german")
    corpus = load_corpus(tmp_path / "toy", "en", "de", cache_dir=cache)
    assert corpus.reports["train"].written == 20
