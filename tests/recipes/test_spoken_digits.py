"""A corpus of synthetic speech, and the corpus yesno."""

import shutil
import tarfile

import pytest

from keras_attnvariants.data import load_corpus
from tests.data import recordings
from tests.data.recordings import tone

soundfile = recordings.soundfile


@pytest.mark.skipif(not shutil.which("espeak-ng"), reason="espeak-ng is not installed")
def test_the_same_arguments_give_the_same_recordings(recipe, tmp_path):
    sizes = ("--train", 6, "--held-out", 2)
    output = recipe("spoken_digits.py", tmp_path / "a", *sizes)
    assert "train: 6 recordings" in output
    recipe("spoken_digits.py", tmp_path / "b", *sizes)
    recipe("spoken_digits.py", tmp_path / "c", *sizes, "--seed", 2)
    files = [f.relative_to(tmp_path / "a") for f in (tmp_path / "a").rglob("*.*")]
    assert len(files) == 10 + 6
    for file in files:
        assert (tmp_path / "a" / file).read_bytes() == (
            tmp_path / "b" / file
        ).read_bytes()
    clip = "clips/train-00000.wav"
    assert (tmp_path / "a" / clip).read_bytes() != (tmp_path / "c" / clip).read_bytes()
    assert soundfile.info(tmp_path / "a" / clip).samplerate == 16_000
    corpus = load_corpus(tmp_path / "a", task="speech", cache_dir=tmp_path / "cache")
    assert [r.written for r in corpus.reports.values()] == [6, 2, 2]
    assert not any(report.problems for report in corpus.reports.values())


def test_without_the_program(recipe, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(AssertionError, match="apt install espeak-ng"):
        recipe("spoken_digits.py", tmp_path / "a")


def test_yesno_is_split_anew(recipe, tmp_path):
    names = [f"{number:02}.wav" for number in range(60)]
    rows = [f"{name}\tyes no\ttrain\n" for name in names]
    (tmp_path / "yesno").mkdir()
    manifest = tmp_path / "yesno" / "manifest.tsv"
    manifest.write_text("file\ttranscript\tsplit\n" + "".join(rows))
    with tarfile.open(tmp_path / "yesno" / "recordings.tar.gz", "w:gz") as tar:
        for name in names:
            tar.add(recordings.write(tmp_path / name, tone(rate=8_000), 8_000), name)
    recipe("spoken_digits.py", tmp_path / "new", "--yesno", tmp_path / "yesno")
    corpus = load_corpus(tmp_path / "new", task="speech", cache_dir=tmp_path / "cache")
    written = {split: report.written for split, report in corpus.reports.items()}
    assert written == {"train": 40, "validation": 5, "test": 15}
