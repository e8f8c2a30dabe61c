"""Gigaword, CNN-DM and JSON lines as they are distributed, in small archives."""

import gzip
import io
import json
import tarfile
import zipfile

import pytest

import keras_attnvariants as kav
from keras_attnvariants.data.sources.download import FetchError
from keras_attnvariants.data.sources.summaries import json_pair
from keras_attnvariants.data.sources.summaries import story
from keras_attnvariants.data.sources.summaries import write_summaries

GIGAWORD = {
    "sumdata/train/._train.article.txt": "\0\5\n",
    "sumdata/train/train.article.txt": "a b c\nd e f\n",
    "sumdata/train/train.title.txt": "a\nd\n",
    "sumdata/train/valid.article.filter.txt": "g h\n",
    "sumdata/train/valid.title.filter.txt": "g\n",
    "sumdata/README": "nothing\n",
}
STORY = (
    "Rain fell\u2028on {0}.\n\nIt stopped.\n\n"
    "@highlight\n\nRain {0}\n\n@highlight\n\nOver?\n"
)


def tar(path, contents, mode="w:gz"):
    with tarfile.open(path, mode) as archive:
        for name, text in contents.items():
            info = tarfile.TarInfo(name)
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))
    return path


def load(path, tmp_path):
    return kav.data.load_corpus(
        path, cache_dir=tmp_path / "cache", task="summarisation"
    )


def zipped(path, contents):
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in contents.items():
            archive.writestr(name, text)
    return path


def as_folder(path, contents):
    path.mkdir()
    for name, text in contents.items():
        (path / name.rpartition("/")[2]).write_text(text)
    return path


@pytest.mark.parametrize(
    ("name", "write"),
    [("summary.tar.gz", tar), ("giga.zip", zipped), ("giga", as_folder)],
)
def test_gigaword(tmp_path, name, write):
    corpus = load(write(tmp_path / name, GIGAWORD), tmp_path)
    assert corpus.read_lines("train") == (["a b c", "d e f"], ["a", "d"])
    assert corpus.read_lines("validation") == (["g h"], ["g"])
    assert [*corpus.splits] == ["train", "validation"]


@pytest.mark.parametrize("is_archive", [True, False])
def test_stories_are_held_out_by_their_names(tmp_path, is_archive):
    stories = {f"cnn/stories/{i:040x}.story": STORY.format(i) for i in range(200)}
    if is_archive:
        place = tmp_path / "both"
        place.mkdir()
        halves = [dict([*stories.items()][start::2]) for start in (0, 1)]
        tar(place / "cnn_stories.tgz", halves[0])
        tar(place / "dailymail_stories.tgz", halves[1])
    else:
        place = as_folder(tmp_path / "stories", stories)
    corpus = load(place, tmp_path)
    assert [*corpus.splits] == ["train", "validation", "test"]
    pairs = {
        pair
        for split in corpus.splits
        for pair in zip(*corpus.read_lines(split), strict=True)
    }
    wanted = {
        (f"Rain fell on {i}. It stopped.", f"Rain {i}. Over?") for i in range(200)
    }
    assert pairs == wanted
    assert 0 < corpus.reports["test"].written < 20


@pytest.mark.parametrize("keys", [("article", "highlights"), ("document", "summary")])
def test_json_lines(tmp_path, keys):
    folder = tmp_path / "json"
    folder.mkdir()
    rows = [
        dict(zip(keys, pair, strict=True), id=1) for pair in [("a\nb", "c"), ("d", "e")]
    ]
    text = "".join(json.dumps(row) + "\n" for row in rows) + "{broken\n"
    (folder / "train.jsonl").write_text(text)
    with gzip.open(folder / "cnn-test.json.gz", "wt") as file:
        file.write(json.dumps(rows[1]) + "\n")
    (folder / "test_allrefs.jsonl").write_text('["no", "documents"]\n')
    corpus = load(folder, tmp_path)
    assert corpus.read_lines("train") == (["a b", "d"], ["c", "e"])
    assert corpus.read_lines("test") == (["d"], ["e"])
    assert corpus.reports["train"].problems == {"empty": 1}


def test_one_file_of_json_lines_is_divided(tmp_path):
    rows = [{"document": f"text {i}", "summary": str(i)} for i in range(200)]
    path = tmp_path / "gigaword.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    corpus = load(path, tmp_path)
    assert sum(report.written for report in corpus.reports.values()) == 200
    for split in corpus.splits:
        for document, summary in zip(*corpus.read_lines(split), strict=True):
            assert document == f"text {summary}"


def test_lists_are_sentences_of_documents_and_references():
    row = {"source": ["One.", "Two."], "target": ["first", "second"]}
    assert json_pair(json.dumps(row)) == ("One. Two.", "first")
    assert json_pair('{"source": "text", "target": []}') == ("text", "")
    assert json_pair("[1]") == ("", "")


def test_other_values_than_texts_are_empty():
    for row in ({"source": None, "target": "a"}, {"source": {}, "target": "a"}):
        assert json_pair(json.dumps(row)) == ("", "a")
    assert json_pair('{"source": "a", "target": [null]}') == ("a", "")
    assert json_pair("[" * 100_000) == ("", "")


def test_half_a_character_in_json(tmp_path):
    path = tmp_path / "train.jsonl"
    path.write_text(r'{"source": "a \ud83d b", "target": "\ud83d\ude00"}' + "\n")
    assert load(path, tmp_path).read_lines("train") == (["a \ufffd b"], ["\U0001f600"])


PARALLEL = {"train.source": "a b\n", "train.target": "a\n"}


@pytest.mark.parametrize("name", ["cnn.tar.gz", "cnn.zip"])
def test_an_archive_of_parallel_files(tmp_path, name):
    write = zipped if name.endswith(".zip") else tar
    members = {f"cnn_dm/{member}": text for member, text in PARALLEL.items()}
    corpus = load(write(tmp_path / name, members), tmp_path)
    assert corpus.read_lines("train") == (["a b"], ["a"])


def test_parallel_files_are_read_whatever_lies_beside_them(tmp_path):
    folder = as_folder(tmp_path / "papers", PARALLEL)
    tar(folder / "giga.tar.gz", GIGAWORD)
    (folder / "test.jsonl").write_text('{"source": "x", "target": "y"}\n')
    (folder / "dev.article").write_text("c d\n")
    (folder / "dev.title").write_text("c\n")
    corpus = load(folder, tmp_path)
    assert corpus.read_lines("train") == (["a b"], ["a"])
    assert [*corpus.splits] == ["train"]
    named = kav.data.load_corpus(
        folder, "article", "title", cache_dir=tmp_path, task="summarisation"
    )
    assert named.read_lines("validation") == (["c d"], ["c"])


def test_the_header_of_a_table_may_name_the_sides(tmp_path):
    path = tmp_path / "papers.tsv"
    rows = "".join(f"{i}\ttext {i}\n" for i in range(200))
    path.write_text(f"target\tsource\n{rows}")
    corpus = load(path, tmp_path)
    assert sum(report.written for report in corpus.reports.values()) == 200
    documents, summaries = corpus.read_lines("train")
    assert documents == [f"text {summary}" for summary in summaries]


def test_a_story_without_highlights_has_no_summary():
    assert story("Text.\n") == ("Text.", "")


def test_broken_archive(tmp_path):
    path = tar(tmp_path / "giga.tar.gz", GIGAWORD)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(FetchError, match="giga.tar.gz is not a complete archive"):
        load(path, tmp_path)


def test_other_tasks_do_not_read_them(tmp_path):
    path = tar(tmp_path / "giga.tar.gz", GIGAWORD)
    with pytest.raises(ValueError):
        kav.data.load_corpus(path, "source", "target", cache_dir=tmp_path)


@pytest.mark.parametrize("name", ["stories.tar.gz", "train.jsonl.gz"])
def test_files_that_end_early(tmp_path, name):
    path = tmp_path / name
    text = json.dumps({"article": "x" * 10**5, "highlights": "y"}).encode()
    (tmp_path / "train.jsonl").write_bytes(text)
    if name.endswith(".tar.gz"):
        with tarfile.open(path, "w:gz") as tar:
            tar.add(tmp_path / "train.jsonl", "train.jsonl")
    else:
        path.write_bytes(gzip.compress(text))
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(FetchError, match="not a complete archive"):
        write_summaries([path], tmp_path)
