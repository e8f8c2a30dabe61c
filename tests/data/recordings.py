"""Recordings of any quality, made by tests."""

import numpy as np
import pytest

import keras_attnvariants as kav

soundfile = pytest.importorskip("soundfile")

TEXTS = ["one two", "three", "four five six", "seven"]


def tone(seconds=0.25, rate=16_000, pitch=440.0, volume=0.5):
    """A sine, float32 `[samples]`."""
    time = np.arange(round(seconds * rate)) / rate
    return (volume * np.sin(2 * np.pi * pitch * time)).astype("float32")


def write(path, samples, rate=16_000, **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, samples, rate, **options)
    return path


def cut(path, share=0.5):
    """Leaves only the beginning of a file."""
    data = path.read_bytes()
    path.write_bytes(data[: int(share * len(data))])
    return path


def corpus(folder, splits=("train", "validation", "test"), count=4):
    """A folder of recordings, with lists of them and their texts."""
    for split in splits:
        names = [f"{split}-{number}.wav" for number in range(count)]
        for number, name in enumerate(names):
            write(
                folder / "clips" / name,
                tone(0.1 * (number % 3 + 1), pitch=300 + number),
            )
        paths = "".join(f"clips/{name}\n" for name in names)
        (folder / f"{split}.audio").write_text(paths)
        texts = "".join(f"{TEXTS[number % 4]}\n" for number in range(count))
        (folder / f"{split}.text").write_text(texts)
    return folder


def toy_model(sharpness=1):
    """A small model of speech with random weights, and the subwords of its texts.

    With weights that are larger by a factor, transcripts differ.
    """
    subwords = kav.Tokenizer.train(TEXTS * 3, 24, may_shrink=True)
    attention = kav.DotProductAttention(num_heads=2)
    model = kav.Transformer(
        subwords.vocabulary_size,
        1,
        16,
        32,
        attention,
        attention,
        attention,
        max_length=64,
        source_embedding=kav.SpeechFrontEnd(16),
        task="speech",
    )
    for weight in model.weights:
        weight.assign(sharpness * weight)
    return model, subwords
