import codecs
import gzip
import random

import pytest

from keras_attnvariants.data import load_corpus
from tests.data.toy import spoil
from tests.data.toy import toy_pairs
from tests.data.toy import write_bytes
from tests.data.toy import write_pairs


def load(folder, cache, **options):
    return load_corpus(folder, "en", "de", cache_dir=cache, **options)


def test_folder(toy_folder, cache):
    corpus = load(toy_folder, cache)
    pairs = toy_pairs(360)
    assert corpus.name == "toy"
    assert list(corpus.splits) == ["train", "validation", "test"]
    for split, expected in (
        ("train", pairs[:300]),
        ("validation", pairs[300:330]),
        ("test", pairs[330:]),
    ):
        assert list(zip(*corpus.read_lines(split), strict=True)) == expected
        source, target = corpus.splits[split]
        assert source == corpus.splits[split].source
        assert source.name == f"{split}.en"
        assert target.name == f"{split}.de"
    assert corpus.report.splitlines()[0] == (
        "train: 300 pairs read, 300 written, no bad lines"
    )


def test_both_directions(toy_folder, cache):
    forward = load_corpus(toy_folder, "en", "de", cache_dir=cache)
    backward = load_corpus(toy_folder, "de", "en", cache_dir=cache)
    assert forward.read_lines("test") == backward.read_lines("test")[::-1]
    assert (backward.source_language, backward.target_language) == ("de", "en")


@pytest.mark.parametrize("name", ["validation", "valid", "dev", "val"])
def test_names_of_validation(tmp_path, cache, name):
    write_pairs(tmp_path / "c", name, toy_pairs(3))
    assert list(load(tmp_path / "c", cache).splits) == ["validation"]


def test_other_splits_keep_their_names(tmp_path, cache):
    for split in ("test2016", "train", "test", "news.2017"):
        write_pairs(tmp_path / "c", split, toy_pairs(3))
    corpus = load(tmp_path / "c", cache)
    assert list(corpus.splits) == ["train", "test", "news.2017", "test2016"]


def test_gzip_on_either_side(tmp_path, cache):
    write_pairs(tmp_path / "c", "train", toy_pairs(5))
    plain = tmp_path / "c" / "train.de"
    plain.with_suffix(".de.gz").write_bytes(gzip.compress(plain.read_bytes()))
    plain.unlink()
    sources, targets = load(tmp_path / "c", cache).read_lines("train")
    assert list(zip(sources, targets, strict=True)) == toy_pairs(5)


def test_byte_order_marks_and_carriage_returns(tmp_path, cache):
    write_bytes(
        tmp_path / "c",
        "train",
        codecs.BOM_UTF8 + b"one\r\ntwo\r\nthree",
        b"eins\nzwei\r\n  drei \n",
    )
    corpus = load(tmp_path / "c", cache)
    assert corpus.read_lines("train") == (
        ["one", "two", "three"],
        ["eins", "zwei", "drei"],
    )
    assert corpus.splits["train"].source.read_bytes() == b"one\ntwo\nthree\n"


def test_odd_line_separators_keep_the_alignment(tmp_path, cache):
    write_bytes(
        tmp_path / "c",
        "test",
        "a\u2028b\na\x0bb\na\x85b\na\rb\n".encode(),
        b"1\n2\n3\n4\n",
    )
    sources, targets = load(tmp_path / "c", cache).read_lines("test")
    assert sources == ["a b"] * 4
    assert targets == ["1", "2", "3", "4"]


BAD_SOURCE = b"good\nbad \xff\xfe end\nnul \0 end\n\n" + b"x" * 2001 + b"\n \t\nfine\n"
BAD_TARGET = b"gut\n2\n3\n4\n5\n6\nfein\n"


def test_bad_training_lines_are_skipped_and_reported(tmp_path, cache):
    write_bytes(tmp_path / "c", "train", BAD_SOURCE, BAD_TARGET)
    corpus = load(tmp_path / "c", cache, max_invalid=0.2)
    assert corpus.read_lines("train") == (["good", "fine"], ["gut", "fein"])
    assert corpus.report == (
        "train: 7 pairs read, 2 written; skipped: "
        "1 invalid UTF-8, 1 NUL, 2 empty, 1 over-long"
    )
    assert corpus.reports["train"].problems["empty"] == 2


def test_bad_target_lines_count_too(tmp_path, cache):
    write_bytes(tmp_path / "c", "train", BAD_TARGET, BAD_SOURCE)
    corpus = load(tmp_path / "c", cache, max_invalid=0.2)
    assert corpus.reports["train"].written == 2


def test_bad_test_lines_are_kept_and_reported(tmp_path, cache):
    write_bytes(tmp_path / "c", "test", BAD_SOURCE, BAD_TARGET)
    corpus = load(tmp_path / "c", cache, max_invalid=0.2)
    sources, targets = corpus.read_lines("test")
    assert targets == ["gut", "2", "3", "4", "5", "6", "fein"]
    assert sources[:4] == ["good", "bad \ufffd\ufffd end", "nul  end", ""]
    assert sources[4] == "x" * 2001
    assert "7 pairs read, 7 written; kept although: 1 invalid UTF-8" in corpus.report


def test_the_limit_of_characters(tmp_path, cache):
    write_pairs(tmp_path / "c", "train", [("ö" * 9, "a"), ("ö" * 10, "a")])
    corpus = load(tmp_path / "c", cache, max_characters=9)
    assert corpus.reports["train"].problems == {"over-long": 1}


def test_unequal_line_counts(tmp_path, cache):
    write_bytes(tmp_path / "c", "train", b"1\n2\n3\n", b"1\n2\n")
    with pytest.raises(
        ValueError,
        match=r"the same number of lines.*Received: 3 lines in .*train\.en and "
        r"2 lines in .*train\.de",
    ):
        load(tmp_path / "c", cache)
    # Nothing half-written may be taken for the corpus later.
    assert not list(cache.rglob("train.*"))


def test_one_line_more_at_the_end_counts(tmp_path, cache):
    write_bytes(tmp_path / "c", "train", b"1\n2\n", b"1\n2\n\n")
    with pytest.raises(ValueError, match="2 lines in .* and 3 lines"):
        load(tmp_path / "c", cache)


def test_a_missing_language(toy_folder, cache):
    (toy_folder / "README.md").write_text("About this corpus.")
    with pytest.raises(
        ValueError, match=r"in language 'fr' .*languages there: de, en\. Received: "
    ):
        load_corpus(toy_folder, "en", "fr", cache_dir=cache)


def test_a_split_in_one_language_only_is_noted(toy_folder, cache):
    (toy_folder / "test.de").unlink()
    write_pairs(toy_folder, "test", toy_pairs(2), languages=("en", "fr"))
    corpus = load(toy_folder, cache)
    assert "test" not in corpus.splits
    assert "test: left out, because there is only 'en'" in corpus.report


def test_no_split_with_both_languages(tmp_path, cache):
    write_pairs(tmp_path / "c", "train", toy_pairs(2), languages=("en", "fr"))
    write_pairs(tmp_path / "c", "test", toy_pairs(2), languages=("de", "fr"))
    with pytest.raises(ValueError, match=r"No split .* both languages.*Received: "):
        load(tmp_path / "c", cache)


def test_two_files_for_one_split(tmp_path, cache):
    write_pairs(tmp_path / "c", "dev", toy_pairs(2))
    write_pairs(tmp_path / "c", "valid", toy_pairs(2))
    with pytest.raises(ValueError, match=r"Two files .*'validation'.*Received: "):
        load(tmp_path / "c", cache)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (bytes(range(256)) * 40, "this one is binary"),
        (random.Random(0).randbytes(1 << 12), "this one is binary"),
        ("eins\nzwei\n".encode("utf-16"), "for each character, as UTF-16"),
        ("grün\nüber\n".encode("latin-1") * 3, "100.0% of the lines.*iconv"),
        (gzip.compress(b"eins\nzwei\n" * 50)[:-20], "Broken gzip file"),
    ],
    ids=["bytes", "random", "utf-16", "latin-1", "gzip"],
)
def test_files_that_are_not_text(tmp_path, cache, content, message):
    write_bytes(tmp_path / "c", "train", b"one\ntwo\n", content)
    with pytest.raises(ValueError, match=rf"{message}.*Received: .*train\.de"):
        load(tmp_path / "c", cache)


def test_empty_corpora(tmp_path, cache):
    write_bytes(tmp_path / "c", "train", b"", b"")
    with pytest.raises(ValueError, match=r"no usable pair.*Received: .*train\.en"):
        load(tmp_path / "c", cache)
    write_bytes(tmp_path / "c", "train", b"\n\n", b"\n\n")
    with pytest.raises(ValueError, match=r"no usable pair.*2 empty.*Received: "):
        load(tmp_path / "c", cache)
    (tmp_path / "nothing").mkdir()
    with pytest.raises(ValueError, match=r"languages there: none\. Received: "):
        load(tmp_path / "nothing", cache)


def test_paths_that_do_not_exist(tmp_path, cache):
    for spec in (tmp_path / "absent", str(tmp_path / "absent"), "absent.tsv"):
        with pytest.raises(FileNotFoundError, match=r"Received: .*absent"):
            load(spec, cache)


def test_unknown_names_get_suggestions(cache):
    with pytest.raises(
        ValueError, match=r"Did you mean 'multi30k'.*Received: 'muti30k'"
    ):
        load("muti30k", cache)


@pytest.mark.parametrize(
    ("languages", "message"),
    [
        (("en", "en"), "must differ"),
        (("", "de"), "`source_language`"),
        (("en", "../de"), "`target_language`"),
        (("en", None), "`target_language`"),
    ],
)
def test_bad_languages(toy_folder, cache, languages, message):
    with pytest.raises(ValueError, match=rf"{message}.*Received: "):
        load_corpus(toy_folder, *languages, cache_dir=cache)


def test_unknown_splits(toy_folder, cache):
    with pytest.raises(ValueError, match="no such split.*'train'.*Received: 'tests'"):
        load(toy_folder, cache).read_lines("tests")


def test_cleaning_happens_once_and_again_when_files_change(toy_folder, cache):
    first = load(toy_folder, cache)
    stamp = first.splits["train"].source.stat().st_mtime_ns
    assert load(toy_folder, cache) == first
    assert first.splits["train"].source.stat().st_mtime_ns == stamp
    write_pairs(toy_folder, "train", toy_pairs(299))
    second = load(toy_folder, cache)
    assert second.folder != first.folder
    assert second.reports["train"].written == 299
    assert {f.name for f in (cache / "corpora").iterdir()} == {
        first.folder.name,
        second.folder.name,
    }


@pytest.mark.parametrize("name", ["train.de", "report.json", "manifest.json"])
@pytest.mark.parametrize("damage", ["cut", "flip", "remove"])
def test_a_damaged_cache_is_made_again(toy_folder, cache, capsys, name, damage):
    first = load(toy_folder, cache)
    expected = {split: first.read_lines(split) for split in first.splits}
    spoil(first.folder / name, damage)
    second = load(toy_folder, cache)
    assert {split: second.read_lines(split) for split in second.splits} == expected
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("A damaged cache is made anew: ")
    assert name in line and str(first.folder) in line
    load(toy_folder, cache)
    assert capsys.readouterr().err == ""


def test_a_line_without_end_is_refused(tmp_path, cache):
    write_bytes(tmp_path / "c", "train", b"a\n" + b"x" * (1 << 21), b"b\nc\n")
    with pytest.raises(ValueError, match=r"Line 2 is longer .*Received: .*train\.en"):
        load(tmp_path / "c", cache)
