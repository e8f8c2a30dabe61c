"""Corpora of recordings in the forms in which they are distributed."""

import sys
import tarfile

import pytest

from keras_attnvariants.data import load_corpus
from keras_attnvariants.data.sources.download import FetchError
from keras_attnvariants.data.sources.recordings import table
from tests.data import recordings
from tests.data.recordings import tone


def loaded(folder, tmp_path):
    return load_corpus(folder, task="speech", cache_dir=tmp_path / "cache")


def lines(corpus, split):
    """Names and texts of the recordings of a split, whose paths are whole."""
    paths, texts = corpus.read_lines(split)
    assert all(path.startswith("/") for path in paths if path)
    return [(p.rpartition("/")[2], text) for p, text in zip(paths, texts, strict=True)]


def test_librispeech(tmp_path):
    parts = {
        "train-clean-100": "84-121",
        "train-other-500": "20-205",
        "dev-clean": "7-8",
        "test-clean": "1-2",
        "test-other": "3-4",
    }
    for part, name in parts.items():
        folder = tmp_path / "LibriSpeech" / part / name.replace("-", "/")
        for number in range(2):
            recordings.write(folder / f"{name}-{number:04}.flac", tone())
        text = "".join(f"{name}-{n:04} GO {part.upper()} {n}\n" for n in range(2))
        (folder / f"{name}.trans.txt").write_text(text)
    corpus = loaded(tmp_path / "LibriSpeech", tmp_path)
    assert list(corpus.splits) == ["train", "validation", "test", "test-other"]
    assert lines(corpus, "train") == [
        ("84-121-0000.flac", "GO TRAIN-CLEAN-100 0"),
        ("84-121-0001.flac", "GO TRAIN-CLEAN-100 1"),
        ("20-205-0000.flac", "GO TRAIN-OTHER-500 0"),
        ("20-205-0001.flac", "GO TRAIN-OTHER-500 1"),
    ]
    assert lines(corpus, "test-other")[1] == ("3-4-0001.flac", "GO TEST-OTHER 1")


def test_common_voice(tmp_path):
    folder = tmp_path / "cv"
    for split in ("train", "dev", "test"):
        recordings.write(folder / "clips" / f"{split}.mp3", tone(1), format="MP3")
        rows = f'client_id\tpath\tsentence\tage\na\t{split}.mp3\tSay "{split}\t\n'
        (folder / f"{split}.tsv").write_text(rows)
    corpus = loaded(folder, tmp_path)
    assert list(corpus.splits) == ["train", "validation", "test"]
    assert lines(corpus, "validation") == [("dev.mp3", 'Say "dev')]


@pytest.mark.parametrize("is_packed", [False, True])
def test_a_table_beside_recordings_or_an_archive(tmp_path, is_packed):
    folder, other = tmp_path / "yes", tmp_path / "other"
    names = [f"{n}.wav" for n in range(4)]
    for name in names:
        recordings.write((other if is_packed else folder) / name, tone(), 8_000)
    folder.mkdir(exist_ok=True)
    if is_packed:
        with tarfile.open(folder / "recordings.tar.gz", "w:gz") as tar:
            for name in names:
                tar.add(other / name, name)
    splits = ["train", "train", "validation", "test"]
    rows = [f"{n}\tyes no\t{s}\n" for n, s in zip(names, splits, strict=True)]
    # As in a snapshot of a hub, where files are links to others.
    (tmp_path / "blob").write_text("file\ttranscript\tsplit\n" + "".join(rows))
    (folder / "manifest.tsv").symlink_to(tmp_path / "blob")
    corpus = loaded(folder, tmp_path)
    assert lines(corpus, "train") == [("0.wav", "yes no"), ("1.wav", "yes no")]
    assert lines(corpus, "test") == [("3.wav", "yes no")]


def test_a_table_without_the_columns(tmp_path):
    (tmp_path / "manifest.tsv").write_text("name\ttext\n")
    with pytest.raises(ValueError, match="must have a column file or path"):
        loaded(tmp_path, tmp_path)


def test_a_broken_archive(tmp_path):
    (tmp_path / "manifest.tsv").write_text("file\ttext\na.wav\tyes\n")
    (tmp_path / "a.tar.gz").write_bytes(b"no archive")
    with pytest.raises(FetchError, match="not a complete archive"):
        loaded(tmp_path, tmp_path)


def test_an_archive_writes_nothing_outside(tmp_path):
    folder = tmp_path / "yes"
    folder.mkdir()
    (folder / "manifest.tsv").write_text("file\ttext\n../a.wav\tyes\n")
    wav = recordings.write(tmp_path / "elsewhere" / "a.wav", tone())
    with tarfile.open(folder / "a.tar", "w") as tar:
        tar.add(wav, "../../escaped.wav")
    with pytest.raises(FetchError, match="nothing outside its folder. .*escaped"):
        loaded(folder, tmp_path)
    assert not list(tmp_path.rglob("escaped.wav"))


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE])
def test_links_in_an_archive_are_told_and_nothing_stays_of_it(tmp_path, kind):
    folder = tmp_path / "yes"
    folder.mkdir()
    (folder / "manifest.tsv").write_text("file\ttext\nb.wav\tyes\n")
    wav = recordings.write(tmp_path / "a.wav", tone())
    link = tarfile.TarInfo("b.wav")
    link.type, link.linkname = kind, "c.wav"
    with tarfile.open(folder / "a.tar", "w") as tar:
        tar.add(wav, "a.wav")
        tar.addfile(link)
    with pytest.raises(FetchError, match="no links.* Received: b.wav"):
        loaded(folder, tmp_path)
    assert not list((tmp_path / "cache").rglob("a.wav"))


def test_checksums_beside_an_archive_are_no_archive(tmp_path):
    folder = tmp_path / "yes"
    folder.mkdir()
    (folder / "manifest.tsv").write_text("file\ttext\tsplit\na.wav\tyes\ttrain\n")
    wav = recordings.write(tmp_path / "a.wav", tone())
    with tarfile.open(folder / "a.tar.xz", "w:xz") as tar:
        tar.add(wav, "a.wav")
    (folder / "a.tar.xz.md5").write_text("0123  a.tar.xz\n")
    (folder / "._a.tar.xz").write_text("no archive")
    assert lines(loaded(folder, tmp_path), "train") == [("a.wav", "yes")]


def test_tables_have_any_cells(tmp_path):
    """Long ones, odd line ends within, and rows that are too short or too long."""
    path = tmp_path / "manifest.tsv"
    texts = ["x" * 140_000, "yes\rno", "more\tthan one"]
    rows = "".join(f"a.wav\t{text}\n" for text in texts)
    path.write_text(f"file\ttext\n{rows}\na.wav\n", newline="")
    found = [text for _, _, text in table([path])]
    assert found == [texts[0], "yes\rno", "more", ""]


def test_a_table_writes_nothing_outside(tmp_path):
    rows = "a.wav\tyes\t../../escaped\n"
    (tmp_path / "manifest.tsv").write_text(f"file\ttext\tsplit\n{rows}")
    with pytest.raises(ValueError, match="must have a name of letters"):
        loaded(tmp_path, tmp_path)
    assert not list(tmp_path.rglob("escaped*"))


def test_an_archive_that_is_packed_too_tightly(tmp_path):
    (tmp_path / "manifest.tsv").write_text("file\ttext\na.wav\tyes\n")
    (tmp_path / "a.wav").write_bytes(bytes(70_000_000))
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as tar:
        tar.add(tmp_path / "a.wav", "b.wav")
    with pytest.raises(FetchError, match="unpacks to more than 64 MB"):
        loaded(tmp_path, tmp_path)


def test_without_the_extra_no_recording_is_called_bad(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "soundfile", None)
    with pytest.raises(ValueError, match="keras_attnvariants.speech"):
        loaded(recordings.corpus(tmp_path / "data", ["test"]), tmp_path)
    monkeypatch.undo()
    report = loaded(tmp_path / "data", tmp_path).reports["test"]
    assert report.written == 4 and not report.bad_recordings
