"""Models exported once for all tests, and a process that serves them."""

import fcntl
import shutil
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import keras
import numpy as np
import pytest

from keras_attnvariants.data import Tokenizer
from keras_attnvariants.decoding import Hypotheses
from keras_attnvariants.serving import export
from tests.serving.tools import LIMITS
from tests.serving.tools import SENTENCES
from tests.serving.tools import VOCABULARY_SIZE
from tests.serving.tools import OtherProcess
from tests.serving.tools import sharp_model
from tests.serving.tools import translate_here

if TYPE_CHECKING:
    from tests.serving.service import Service


@pytest.fixture(scope="session")
def texts() -> list[str]:
    """Sentences of a made-up language with accents, a second script and emoji."""
    rng = np.random.default_rng(4)
    letters = list("abcdefghiklmnoprstuäöüéあいう😀")
    sizes = rng.integers(2, 6, 80)
    words = ["".join(rng.choice(letters, size)) for size in sizes]
    return [" ".join(rng.choice(words, rng.integers(1, 7))) for _ in range(600)]


@pytest.fixture(scope="session")
def tokenizer(texts) -> Tokenizer:
    return Tokenizer.train(texts, VOCABULARY_SIZE)


@pytest.fixture(scope="session")
def models() -> Mapping[str, keras.Model]:
    """The model of every variant."""
    return OnDemand(sharp_model)


@pytest.fixture(scope="session")
def found(models, tokenizer, texts) -> Mapping[str, tuple[Hypotheses, list[str]]]:
    """Results of every variant's search in Python for the first texts, and its best."""
    return OnDemand(
        lambda variant: translate_here(models[variant], tokenizer, texts[:SENTENCES])
    )


@pytest.fixture(scope="session")
def exported(models, tokenizer, shared_folder) -> Mapping[str, Path]:
    """The SavedModel of every variant."""
    folder = shared_folder / "exported"

    def make(variant):
        options = {"n_best": 3, **LIMITS}
        return export_once(folder / variant, models, variant, tokenizer, **options)

    return OnDemand(make)


@pytest.fixture(scope="session")
def exported_for_ids(models, shared_folder) -> Path:
    """The SavedModel of a model without its tokenizer."""
    folder = shared_folder / "exported_for_ids"
    return export_once(folder, models, "hc-sa", None, **LIMITS)


def export_once(folder, models, variant, tokenizer, **options) -> Path:
    """The only version in a folder, exported by the first worker that needs it."""
    import tensorflow_text  # noqa: F401  registers operators, for who loads it here

    folder.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "1").exists():
            export(models[variant], tokenizer, folder, **options)
    return folder / "1"


@pytest.fixture(scope="session")
def exported_with_options(models, tokenizer, shared_folder) -> Path:
    """The SavedModel of a model whose signatures take options for each sentence."""
    folder = shared_folder / "exported_with_options"
    options = {"beam_size": 3, "signatures": ("translate_with", "sample"), **LIMITS}
    return export_once(folder, models, "hc-sa", tokenizer, **options)


@pytest.fixture(scope="session")
def service(exported, tmp_path_factory) -> Iterator["Service"]:
    """A server of the first model, as `en-de` in version 1."""
    from tests.serving.service import service_of

    folder = tmp_path_factory.mktemp("served")
    shutil.copytree(exported["hc-sa"], folder / "1")
    with service_of(folder) as found:
        yield found


@pytest.fixture(scope="session")
def server() -> Iterator[OtherProcess]:
    """A process without our package."""
    process = OtherProcess("keras_attnvariants")
    yield process
    process.close()


class OnDemand(dict):
    """Values that are made from their keys when they are first needed."""

    def __init__(self, make: Callable):
        super().__init__()
        self.make = make

    def __missing__(self, key):
        self[key] = self.make(key)
        return self[key]
