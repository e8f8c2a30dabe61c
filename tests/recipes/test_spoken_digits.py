"""A corpus of synthetic speech, and the corpus yesno."""

import shutil
import tarfile

import numpy as np
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
    assert len(files) == 10 + 9
    assert len((tmp_path / "a" / "test.voice").read_text().split()) == 2
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


def test_yesno_is_split_anew_and_its_words_are_joined(recipe, tmp_path):
    rng = np.random.default_rng(3)
    rows = {f"{n:02}.wav": rng.choice(["yes", "no"], size=n % 3 + 2) for n in range(60)}
    (tmp_path / "yesno").mkdir()
    manifest = tmp_path / "yesno" / "manifest.tsv"
    lines = [f"{name}\t{' '.join(words)}\ttrain\n" for name, words in rows.items()]
    manifest.write_text("file\ttranscript\tsplit\n" + "".join(lines))
    pitch, pause = {"yes": 500, "no": 1000}, np.zeros(800)
    with tarfile.open(tmp_path / "yesno" / "recordings.tar.gz", "w:gz") as tar:
        for name, words in rows.items():
            spoken = [[tone(0.3, 8_000, pitch[word]), pause] for word in words]
            spoken = np.concatenate([part for both in spoken for part in both])
            tar.add(recordings.write(tmp_path / name, spoken, 8_000), name)
    yesno = tmp_path / "new"
    output = recipe(
        "spoken_digits.py", yesno, "--yesno", tmp_path / "yesno", "--joined", 30
    )
    assert output == "125 words joined to 30 recordings\n"
    corpus = load_corpus(yesno, task="speech", cache_dir=tmp_path / "cache")
    written = {split: report.written for split, report in corpus.reports.items()}
    assert written == {"train": 70, "validation": 5, "test": 15}
    tested = (yesno / "test.audio").read_text().split()
    trained = (yesno / "train.audio").read_text().split()
    assert not set(tested) & set(trained)
    for name, text in zip(
        trained, (yesno / "train.text").read_text().splitlines(), strict=True
    ):
        samples, rate = soundfile.read(yesno / name)
        assert heard(samples, rate) == text.split()


def heard(samples, rate):
    """The words of tones of 0.3 seconds, by their pitches."""
    loud = np.abs(samples[: len(samples) // 80 * 80].reshape(-1, 80)).max(1) > 0.1
    begins = 80 * np.flatnonzero(np.diff(loud, prepend=False) & loud)
    spectra = [np.fft.rfft(samples[begin + 160 : begin + 1760]) for begin in begins]
    pitches = [np.abs(spectrum).argmax() * rate / 1600 for spectrum in spectra]
    return ["yes" if abs(pitch - 500) < 50 else "no" for pitch in pitches]
