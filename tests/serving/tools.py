"""Tiny models with sharp outputs, and a process that serves them once exported."""

import json
import os
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
from keras import ops

from keras_attnvariants import presets
from keras_attnvariants.backend import jit
from keras_attnvariants.decoding import beam_search
from keras_attnvariants.utils.files import file_entry
from keras_attnvariants.utils.folders import MANIFEST
from tests.selection import mostly_slow
from tests.serving.mixtures import arguments_of
from tests.serving.mixtures import members_of
from tests.serving.mixtures import sizes_of

# Variants whose texts are served: `base` and its kin in one model.
KIN = "base+sh-x+hc-all"
VARIANTS = ("hc-sa", KIN, "lstm")
# One model is exported for the fast tests.
FIRST_IS_FAST = mostly_slow(VARIANTS, ["hc-sa"])
VOCABULARY_SIZE = 100
SENTENCES = 50
# Factor by which initial weights are enlarged. Feedback and more layers amplify
# rounding: with 3, one of 50 translations with `context` in float32 differs from that
# in float64, with 2 none does.
SHARPNESS = {"context": 2.0, "accumulated-energies": 1.5}
SHARPNESS_OF_ONE, SHARPNESS_OF_MIXTURES = 3.0, 2.0
# Bytes of which rubbish is made: broken UTF-8, directions, special tokens.
RUBBISH = [
    b"\0",
    b"\xff",
    b"\xc3",
    b"\xed\xa0\x80",
    "שלום".encode(),
    b"abc ",
    b" ",
    "\u202eabc\u202c".encode(),
    "e\u0301\u0323".encode(),
    "😀👩‍👩‍👧".encode(),
    b"\xef\xbb\xbf",
    "\u2028".encode(),
    b"\n",
    b"</s><s><unk><pad>",
    b"\x7f",
]
LIMITS = {"max_batch": 33, "max_characters": 120, "max_tokens": 30}


def sharp_model(variant: str, **overrides) -> keras.Model:
    """An untrained model with sharp probabilities, so that its outputs vary.

    Args:
        variant: variant of a preset, or a mixture of several (see `mixtures`).
        **overrides: other sizes than the smallest, and other arguments of the model.
    """
    keras.utils.set_random_seed(5)
    members = members_of(variant)
    is_mixture = len(members) > 1
    given = arguments_of(variant) if is_mixture else sizes_of(variant)
    options = {"vocabulary_size": VOCABULARY_SIZE, "max_length": 90}
    preset = presets.get(f"kav/{'base' if is_mixture else variant}/multi30k")
    model = preset.build(**{**given, **options, **overrides})
    most = SHARPNESS_OF_MIXTURES if is_mixture else SHARPNESS_OF_ONE
    sharpness = min(SHARPNESS.get(member, most) for member in members)
    for weight in model.weights:
        weight.assign(sharpness * weight)
    return model


class OtherProcess:
    """A process in which some modules cannot be imported, and that runs signatures."""

    def __init__(
        self, *blocked: str, python: str | Path = sys.executable, **environment: str
    ):
        script = Path(__file__).with_name("other_process.py")
        self.process = subprocess.Popen(
            [str(python), str(script), *blocked],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
        )

    def call(self, path: Path, signature: str, **inputs) -> dict[str, np.ndarray]:
        """The outputs of a signature; a `ServingError` with its message if it fails."""
        request = {
            "path": str(path),
            "signature": signature,
            "inputs": {name: packed(value) for name, value in inputs.items()},
        }
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        reply = json.loads(self.process.stdout.readline())
        if "error" in reply:
            raise ServingError(reply["error"])
        return {name: unpacked(value) for name, value in reply["outputs"].items()}

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


class ServingError(Exception):
    """A signature refused its inputs."""


def sign(folder: Path) -> None:
    """Writes a matching manifest, as someone would who changes a file on purpose."""
    files = (f for f in sorted(folder.rglob("*")) if f.is_file() and f.name != MANIFEST)
    entries = {f.relative_to(folder).as_posix(): file_entry(f) for f in files}
    (folder / MANIFEST).write_text(json.dumps(entries))


def packed(values) -> dict:
    """An array or a list of texts as a JSON value; bytes become Latin-1."""
    if isinstance(values, np.ndarray) and values.dtype.kind == "U":
        return {
            "dtype": "string",
            "shape": values.shape,
            "values": values.ravel().tolist(),
        }
    if isinstance(values, np.ndarray):
        return {
            "dtype": values.dtype.name,
            "shape": values.shape,
            "values": values.ravel().tolist(),
        }
    data = [v if isinstance(v, bytes) else v.encode() for v in values]
    return {
        "dtype": "string",
        "shape": [len(data)],
        "values": [value.decode("latin-1") for value in data],
    }


def unpacked(value: dict) -> np.ndarray:
    """The inverse of `packed`, for outputs; texts have to be valid UTF-8."""
    if value["dtype"] != "string":
        return np.array(value["values"], value["dtype"]).reshape(value["shape"])
    texts = [text.encode("latin-1").decode("utf-8") for text in value["values"]]
    return np.array(texts, dtype=object).reshape(value["shape"])


def as_batch(rows, width=None) -> np.ndarray:
    """Rows of ids, padded on the right."""
    batch = np.zeros((len(rows), width or max(map(len, rows))), "int32")
    for row, ids in zip(batch, rows, strict=True):
        row[: len(ids)] = ids
    return batch


def translate_here(model, tokenizer, texts, n_best=1):
    """Hypotheses found in Python, as arrays, and the texts of the best ones."""
    rows = tokenizer.encode(texts)

    def search(ids):
        return beam_search(model, ids, n_best=n_best, return_alignments=n_best > 1)

    found = jit(search, xla=False)(as_batch(rows))
    best = ops.convert_to_numpy(found.ids)[:, 0]
    return found, tokenizer.decode(best)
