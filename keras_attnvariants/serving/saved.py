"""Translating with a SavedModel that `export` wrote, from Python."""

import importlib.util
import os
import sys
from collections.abc import Mapping
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from keras_attnvariants.serving.calls import Array
from keras_attnvariants.serving.calls import Signature
from keras_attnvariants.serving.calls import TensorSpec
from keras_attnvariants.serving.calls import checked_call
from keras_attnvariants.serving.folders import INFO
from keras_attnvariants.serving.folders import newest_version
from keras_attnvariants.serving.translator import DEFAULT
from keras_attnvariants.serving.translator import BaseTranslator
from keras_attnvariants.serving.verification import verify as check
from keras_attnvariants.utils.files import read_json

# The operators of the tokenizer, without the rest of TensorFlow Text.
_LIBRARY = "python/ops/_sentencepiece_tokenizer.so"


class SavedTranslator(BaseTranslator):
    """Translates lists of texts with a SavedModel in this process.

    What a model has is in `signatures`; see `BaseTranslator` for the methods.

    Args:
        path: what `export` returned, or the folder of all versions; the newest of
            them is loaded.
        verify: whether to refuse a SavedModel whose files have changed, or that has
            other operators than a translation needs, see
            `keras_attnvariants.serving.verify`.

    Attributes:
        path: folder of the version.
        info: the content of its `assets.extra/model_info.json`.
        signatures: what it has, by name.

    Raises:
        FileNotFoundError: the folder is not a SavedModel of this package.
        ValueError: it was exported without a tokenizer, or is not what it should be.

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
        self.info = read_json(self.path / INFO)
        self.signatures = signatures_of(self.info)
        if "text" not in self.signatures[DEFAULT].inputs:
            raise ValueError(
                "`path` must be a SavedModel that translates text. This one was "
                "exported without a tokenizer: call its signature translate_ids with "
                f"token ids. Received: {path}"
            )
        register_text_operators()
        self._loaded = tf.saved_model.load(str(self.path))

    def predict(
        self,
        inputs: Mapping[str, Any],
        signature: str = DEFAULT,
        outputs: Sequence[str] | None = None,
    ) -> dict[str, Array]:
        """See `BaseTranslator.predict`."""
        call = checked_call(self._signature(signature), inputs, outputs)
        run = self._loaded.signatures[signature]
        rows, parts = [], []
        for indices, batch in call.batches(self.info["options"]["max_batch"]):
            tensors = {
                name: tf.constant(values, call.signature.inputs[name].dtype)
                for name, values in batch.items()
            }
            found = run(**tensors)
            rows.append(indices)
            parts.append({n: decoded(found[n].numpy()) for n in call.outputs})
        return call.joined(rows, parts)

    def _signature(self, name: str) -> Signature:
        if name not in self.signatures:
            has = ", ".join(repr(other) for other in self.signatures)
            raise ValueError(
                f"The SavedModel must have the signature {name!r}: name it when you "
                f"export (`kav export --signature {name}`). Received: {self.path}, "
                f"which has {has}"
            )
        return self.signatures[name]


def signatures_of(info: Mapping[str, Any]) -> dict[str, Signature]:
    """The signatures that `model_info.json` describes, by name."""

    def specs(tensors: Mapping[str, Any]) -> dict[str, TensorSpec]:
        return {
            name: TensorSpec(tensor["dtype"], tuple(tensor["shape"]))
            for name, tensor in tensors.items()
        }

    return {
        name: Signature(name, specs(found["inputs"]), specs(found["outputs"]))
        for name, found in info["signatures"].items()
    }


def register_text_operators() -> None:
    """Lets TensorFlow load SavedModels that read text.

    TensorFlow Text itself is imported only if it keeps them elsewhere: it brings Keras
    with it.
    """
    if "tensorflow_text" in sys.modules:
        return
    found = importlib.util.find_spec("tensorflow_text")
    library = Path(found.origin).parent / _LIBRARY if found and found.origin else None
    if library is not None and library.is_file():
        tf.load_op_library(str(library))
    else:
        import tensorflow_text  # noqa: F401


def decoded(array: Array) -> Array:
    """An output; texts as strings."""
    if array.dtype != object:
        return array
    texts = np.empty(array.size, object)
    texts[:] = [text.decode("utf-8") for text in array.ravel()]
    return texts.reshape(array.shape)
