"""Keras model zoo of attention variants for translation, summaries and speech.

>>> import keras_attnvariants as kav
>>> layer = kav.HardCodedAttention(num_heads=2, offsets=(-1, 1))

The folders of the package (`kav.attention`, `kav.models`, `kav.presets`, …) and the
classes and functions listed in `kav.__all__` are imported when they are first used:
neither Keras nor TensorFlow starts before something needs them. Keras can load its
files with classes of this package once their folder has been imported, which happens
here if Keras was imported before.
"""

import sys
from importlib import import_module
from typing import Any

__version__ = "0.1.0"

# A folder imports only from folders that stand before it.
FLOORS = {
    "zoo": ("backend", "attention", "models", "presets", "decoding"),
    "practice": ("data", "trained", "foreign", "training", "evaluation", "serving"),
    "laboratory": ("analysis", "tuning", "experiments"),
}

_FOLDERS = ["utils", *(name for floor in FLOORS.values() for name in floor), "cli"]

_HOME = {
    "AlibiAttention": "attention",
    "BaseAttention": "attention",
    "ConcatenatedNgram": "attention",
    "DotProductAttention": "attention",
    "HardCodedAttention": "attention",
    "HardCodedCrossAttention": "attention",
    "Heterogeneous": "attention",
    "Homogeneous": "attention",
    "Interleaved": "attention",
    "LinearAttention": "attention",
    "LocalAttention": "attention",
    "NeuralNgram": "attention",
    "MultiHeadBase": "attention",
    "PhraseAttention": "attention",
    "RecurrentCrossAttention": "attention",
    "RelativeBiasAttention": "attention",
    "Seq2SeqLSTM": "models",
    "SpeechFrontEnd": "models",
    "Transformer": "models",
    "load_model": "trained",
    "save_model": "data",
    "swap_attention": "models",
    "Translator": "decoding",
    "beam_search": "decoding",
    "Tokenizer": "data",
}

__all__ = ["__version__", *_FOLDERS, *_HOME]


def __getattr__(name: str) -> Any:
    """Import a folder, or the folder that a public name lives in, on first use."""
    if name in _FOLDERS:
        return import_module(f"{__name__}.{name}")
    if name in _HOME:
        value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


if "keras" in sys.modules:
    # They register every class that Keras may find in a file.
    for _folder in ("models", "training"):
        import_module(f"{__name__}.{_folder}")
