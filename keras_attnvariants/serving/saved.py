"""Translating with a SavedModel that `export` wrote, from Python."""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import tensorflow as tf

from keras_attnvariants.serving.export import versions
from keras_attnvariants.serving.info import INFO
from keras_attnvariants.serving.verify import verify as check
from keras_attnvariants.utils.files import read_json


class SavedTranslator:
    """Translates lists of texts with a SavedModel, in batches that it accepts.

    Args:
        path: what `export` returned, or the folder of all versions; the newest of
            them is loaded.
        verify: whether to refuse a SavedModel whose files have changed, or that has
            other operators than a translation needs, see
            `keras_attnvariants.serving.verify`.

    Attributes:
        path: folder of the version.
        info: the content of its `assets.extra/model_info.json`.

    Raises:
        FileNotFoundError: the folder is not a SavedModel of this package.
        ValueError: it was exported without a tokenizer, or is not what it should be.

    Example:

    ```python
    translator = kav.serving.SavedTranslator("saved_models/en-de")
    translator.translate(["Good morning."])
    ```
    """

    def __init__(self, path: str | os.PathLike[str], *, verify: bool = True) -> None:
        self.path = Path(path)
        if numbers := versions(path):
            self.path = self.path / str(numbers[-1])
        if not (self.path / INFO).is_file():
            raise FileNotFoundError(
                "A SavedModel of this package is a folder with saved_model.pb and "
                f"{INFO}, or a folder of such versions. Received: {path}"
            )
        if verify:
            check(self.path)
        self.info = read_json(self.path / INFO)
        if "text" not in self.info["signatures"]["serving_default"]["inputs"]:
            raise ValueError(
                "`path` must be a SavedModel that translates text. This one was "
                "exported without a tokenizer: call its signature translate_ids with "
                f"token ids. Received: {path}"
            )
        # Registers the operators of the tokenizer.
        import tensorflow_text  # noqa: F401

        self._loaded = tf.saved_model.load(str(self.path))
        self._translate = self._loaded.signatures["serving_default"]

    def translate(self, texts: Sequence[str]) -> list[str]:
        """One translation per text; an empty text has an empty translation."""
        if isinstance(texts, str):
            raise TypeError(f"`texts` must be a list of strings. Received: {texts!r}")
        translations = [""] * len(texts)
        # Texts of about equal length go together: a batch is as slow as its longest.
        order = np.argsort([len(text) for text in texts], kind="stable")
        size = self.info["options"]["max_batch"]
        for start in range(0, len(order), size):
            rows = order[start : start + size]
            batch = tf.constant([texts[row].encode("utf-8", "replace") for row in rows])
            for row, text in zip(
                rows, self._translate(text=batch)["translations"].numpy(), strict=True
            ):
                translations[row] = text.decode("utf-8")
        return translations
