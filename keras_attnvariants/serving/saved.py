"""Translating with a SavedModel that `export` wrote, from Python."""

import os
from collections.abc import Mapping
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import tensorflow as tf

from keras_attnvariants.data.audio import AudioTokenizer
from keras_attnvariants.serving.calls import Array
from keras_attnvariants.serving.calls import Arrays
from keras_attnvariants.serving.calls import Signature
from keras_attnvariants.serving.calls import checked_call
from keras_attnvariants.serving.folders import newest_version
from keras_attnvariants.serving.folders import read_info
from keras_attnvariants.serving.graphs import damage_if_failing
from keras_attnvariants.serving.graphs import read_saved_model
from keras_attnvariants.serving.messages import signatures_of
from keras_attnvariants.serving.translator import DEFAULT
from keras_attnvariants.serving.translator import BaseTranslator
from keras_attnvariants.serving.verification import verify as check
from keras_attnvariants.utils.importing import import_tensorflow_text
from keras_attnvariants.utils.machine import cores


class SavedTranslator(BaseTranslator):
    """Translates lists of texts with a SavedModel in this process.

    See `BaseTranslator` for the methods. Batches of `max_batch` texts are translated
    side by side on all cores. This is faster if TensorFlow does not divide operators
    among cores as well: set `TF_NUM_INTRAOP_THREADS=1` before it is imported.

    Args:
        path: what `export` returned, or the folder of all versions; the newest of
            them is loaded.
        verify: whether to refuse a SavedModel whose files have changed, or with
            operators that translation does not need, see
            `keras_attnvariants.serving.verify`.

    Attributes:
        path: folder of the version.
        info: the content of its `assets.extra/model_info.json`.
        signatures: the signatures of the model, by name.

    Raises:
        FileNotFoundError: the folder is not a SavedModel of this package.
        DamagedFolderError: a file is missing or not what it should be, or TensorFlow
            cannot load or run it.
        ValueError: it is not a translation model, or does not fit this processor.

    Example:

    ```python
    translator = kav.serving.SavedTranslator("saved_models/en-de")
    translator.translate(["Good morning."])
    [[best, *others]] = translator.nbest(["Good morning."])
    ```
    """

    def __init__(self, path: str | os.PathLike[str], *, verify: bool = True) -> None:
        self.path = newest_version(path)
        if verify:
            check(self.path)
        self.info = read_info(self.path)
        if "tokenizer_sha256" in self.info:
            import_tensorflow_text()
        with damage_if_failing(self.path):
            saved = read_saved_model(self.path)
            self.signatures = signatures_of(saved.meta_graphs[0])
            loaded = tf.saved_model.load(str(self.path)).signatures
            names = {DEFAULT, *self.signatures}
            self._functions = {name: loaded[name] for name in names}
        limit = self.info["options"]["max_tokens"]
        self._longest = limit * AudioTokenizer.source_stride + 1

    def predict(
        self,
        inputs: Mapping[str, Any],
        signature: str = DEFAULT,
        outputs: Sequence[str] | None = None,
    ) -> dict[str, Array]:
        """See `BaseTranslator.predict`."""
        call = checked_call(self._signature(signature), inputs, outputs)
        function, specs = self._functions[signature], call.signature.inputs

        def run(batch: Arrays) -> Arrays:
            tensors = {
                name: tf.constant(values, specs[name].dtype)
                for name, values in batch.items()
            }
            with damage_if_failing(self.path):
                found = function(**tensors)
                return {name: decoded(found[name].numpy()) for name in call.outputs}

        batches = list(call.batches(self.info["options"]["max_batch"]))
        with ThreadPoolExecutor(cores()) as pool:
            parts = list(pool.map(run, [batch for _, batch in batches]))
        with damage_if_failing(self.path):
            return call.joined([rows for rows, _ in batches], parts)

    def _signature(self, name: str) -> Signature:
        if name not in self.signatures:
            has = ", ".join(repr(other) for other in sorted(self.signatures))
            raise ValueError(
                f"The SavedModel must have the signature {name!r}: name it when you "
                f"export (`kav export --signature {name}`). Received: {self.path}, "
                f"which has {has}"
            )
        return self.signatures[name]


def decoded(array: Array) -> Array:
    """An output, with texts as strings."""
    if array.dtype != object:
        return array
    return np.asarray(np.frompyfunc(bytes.decode, 1, 1)(array), object)
