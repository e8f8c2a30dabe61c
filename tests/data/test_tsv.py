import gzip

import pytest

from keras_attnvariants.data import load_corpus
from tests.data.toy import toy_pairs


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
