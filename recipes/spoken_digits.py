"""Make a small corpus of speech: strings of digits and short commands.

    python recipes/spoken_digits.py digits
    kav train --task speech --data digits --run runs/digits

The speech is synthetic: the program espeak-ng reads the texts in several voices, at
several speeds, and white noise is added. Use it to compare models: it says nothing
about recordings of people. The voices of the validation and test sets are not used for
training; `test.voice` has the voice of each recording. The same arguments give the same
corpus with the same release of espeak-ng.

The corpus "yesno" has recordings of a person (60 of eight words each, at 8,000 Hz).
This program splits it anew, three quarters for training and validation:

    python recipes/spoken_digits.py yesno --yesno ../shared/data/yesno

A decoder memorises the texts of 40 recordings before it learns to listen. The training
recordings are therefore also cut into words at their pauses, and the words joined into
new training recordings of one to ten words.
"""

import argparse
import csv
import io
import itertools
import random
import shutil
import subprocess
import tarfile
from collections import defaultdict
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import soundfile
import soxr

RATE = 16_000
ACCENTS = ("en-us", "en-gb", "en-gb-scotland", "en-029", "en-gb-x-rp")
SPEAKERS = {
    "train": ("m1", "m2", "m3", "m4", "m6", "f1", "f2", "f5", "Andy", "Annie", "Gene"),
    "validation": ("m5", "f4"),
    "test": ("m7", "f3", "Mike", "Linda"),
}
DIGITS = "zero one two three four five six seven eight nine".split()
THINGS = ("light", "radio", "heater", "fan", "door", "window")
ROOMS = ("kitchen", "bedroom", "garden", "office")
ACTIONS = ("turn on", "turn off", "open", "close", "check")


class Utterance(NamedTuple):
    """A text, and how it is read."""

    text: str
    voice: str
    words_per_minute: int
    pitch: int
    decibels: float  # of the speech above the noise
    seed: int


def utterance(split: str, draw: random.Random) -> Utterance:
    """A random text with a voice of a split: digits or, half of the time, a command."""
    if draw.random() < 0.5:
        text = " ".join(draw.choices(DIGITS, k=draw.randint(2, 6)))
    else:
        text = f"{draw.choice(ACTIONS)} the {draw.choice(THINGS)}"
        text += f" in the {draw.choice(ROOMS)}" if draw.random() < 0.5 else ""
    return Utterance(
        text=text,
        voice=f"{draw.choice(ACCENTS)}+{draw.choice(SPEAKERS[split])}",
        words_per_minute=draw.randint(140, 210),
        pitch=draw.randint(35, 65),
        decibels=draw.choice([15, 25, 35, 45]),
        seed=draw.getrandbits(32),
    )


def speak(said: Utterance, path: Path) -> float:
    """Writes an utterance as a 16-bit WAV file; returns its seconds."""
    options = ["-v", said.voice, "-s", said.words_per_minute, "-p", said.pitch]
    words = ["espeak-ng", *map(str, options), "--stdout", said.text]
    spoken = subprocess.run(words, check=True, stdout=subprocess.PIPE).stdout  # noqa: S603
    samples, rate = soundfile.read(io.BytesIO(spoken), dtype="float32")
    samples = soxr.resample(samples, rate, RATE)
    loudness = np.sqrt(np.mean(samples**2))
    noise = np.random.default_rng(said.seed).normal(size=len(samples))
    samples = samples + noise * loudness * 10 ** (-said.decibels / 20)
    samples *= 0.9 / np.abs(samples).max()
    soundfile.write(path, samples, RATE, subtype="PCM_16")
    return len(samples) / RATE


def write_split(folder: Path, split: str, count: int, seed: int) -> None:
    """Writes the recordings of a split, and the lists of their names and texts."""
    draw = random.Random(f"{split} {seed}")  # noqa: S311
    chosen = [utterance(split, draw) for _ in range(count)]
    names = [f"clips/{split}-{number:05}.wav" for number in range(count)]
    (folder / "clips").mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor() as pool:
        seconds = sum(pool.map(speak, chosen, [folder / name for name in names]))
    write_list(folder / f"{split}.audio", names)
    write_list(folder / f"{split}.text", [each.text for each in chosen])
    voices = [each.voice for each in chosen]
    write_list(folder / f"{split}.voice", voices)
    spoken = f"{seconds / 60:.1f} minutes, {len(set(voices))} voices"
    print(f"{split}: {count} recordings, {spoken}")


def write_list(path: Path, lines: Iterable[str]) -> None:
    """Writes the names, texts or voices of recordings."""
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def words(samples: np.ndarray, rate: int, pause: float = 0.06) -> list[np.ndarray]:
    """The words of a recording, cut in the middle of its pauses.

    Args:
        samples: floats.
        rate: samples per second.
        pause: the shortest pause between words, in seconds.
    """
    step = rate // 100
    frames = samples[: len(samples) // step * step].reshape(-1, step)
    loudness = np.sqrt(np.mean(frames**2, axis=1))
    (loud,) = np.nonzero(loudness > 0.1 * np.quantile(loudness, 0.95))
    spoken = np.split(loud, np.flatnonzero(np.diff(loud) > pause * 100) + 1)
    spoken = [each for each in spoken if len(each) >= 10]  # not a click
    cuts = [(a[-1] + b[0]) // 2 * step for a, b in itertools.pairwise(spoken)]
    return np.split(samples, cuts)


def join_words(
    folder: Path, rows: list[tuple[str, str]], count: int, seed: int
) -> None:
    """Writes new training recordings, joined from words of those of the corpus.

    Args:
        folder: folder of the recordings.
        rows: names and texts of the training recordings; the new ones are appended.
        count: number of recordings to write.
        seed: seed of the random choices.
    """
    said = defaultdict[str, list[np.ndarray]](list)
    for name, text in rows:
        samples, rate = soundfile.read(folder / name)
        found, texts = words(samples, rate), text.split()
        if len(found) == len(texts):
            for word, samples in zip(texts, found, strict=True):
                said[word].append(samples)
    draw = random.Random(seed)  # noqa: S311
    for number in range(count):
        texts = draw.choices(sorted(said), k=draw.randint(1, 10))
        samples = np.concatenate([draw.choice(said[word]) for word in texts])
        name = f"clips/joined-{number:04}.wav"
        soundfile.write(folder / name, samples, rate, subtype="PCM_16")
        rows.append((name, " ".join(texts)))
    print(f"{sum(map(len, said.values()))} words joined to {count} recordings")


def split_yesno(folder: Path, yesno: Path, joined: int, seed: int) -> None:
    """Writes the corpus yesno with 15 recordings for testing and 5 for validation."""
    (folder / "clips").mkdir(parents=True, exist_ok=True)
    with (yesno / "manifest.tsv").open(encoding="utf-8") as file:
        rows = sorted(csv.DictReader(file, delimiter="\t"), key=lambda row: row["file"])
    with tarfile.open(yesno / "recordings.tar.gz") as tar:
        for member in tar:
            if recording := tar.extractfile(member):
                path = folder / "clips" / Path(member.name).name
                path.write_bytes(recording.read())
    splits: dict[str, list[tuple[str, str]]] = {s: [] for s in SPEAKERS}
    for number, row in enumerate(rows):
        split = "validation" if number % 12 == 0 else "train"
        split = "test" if number % 4 == 3 else split
        splits[split].append((f"clips/{row['file']}", row["transcript"]))
    join_words(folder, splits["train"], joined, seed)
    for split, chosen in splits.items():
        write_list(folder / f"{split}.audio", [name for name, _ in chosen])
        write_list(folder / f"{split}.text", [text for _, text in chosen])


def main() -> None:
    """Reads the arguments and writes the corpus."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    number = partial(parser.add_argument, type=int)
    parser.add_argument("folder", type=Path, help="a folder that does not exist")
    number("--train", default=4000, help="recordings for training")
    number("--held-out", default=300, help="recordings for validation, and for testing")
    number("--seed", default=1)
    parser.add_argument("--yesno", type=Path, help="the corpus yesno, instead")
    number("--joined", default=1000, help="recordings of joined words, with --yesno")
    given = parser.parse_args()
    if given.folder.exists():
        parser.error(f"there is a folder {given.folder}")
    if given.yesno is not None:
        split_yesno(given.folder, given.yesno, given.joined, given.seed)
        return
    if shutil.which("espeak-ng") is None:
        parser.error("espeak-ng is not installed: sudo apt install espeak-ng")
    counts = {"train": given.train, "validation": given.held_out}
    for split, count in {**counts, "test": given.held_out}.items():
        write_split(given.folder, split, count, given.seed)


if __name__ == "__main__":
    main()
