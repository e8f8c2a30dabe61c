"""The file that describes a SavedModel to its users: limits, versions, signatures."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import tensorflow as tf

from keras_attnvariants import __version__
from keras_attnvariants.data import Tokenizer
from keras_attnvariants.serving.options import Options

# TensorFlow leaves this folder of a SavedModel to its users.
INFO = Path("assets.extra") / "model_info.json"

SIGNATURES = {
    "serving_default": "the best translation of each text",
    "nbest": "the best translations of each text, aligned with it",
    "score": "how probable each target is as a translation of its source",
    "translate_ids": "the best translation of token ids, by stock operators only",
}

OUTPUTS = {
    "translations": "best first; empty for an empty text",
    "scores": "log probability, EOS included, normalised by length",
    "alignments": "attention of each token to each source token; 0 if there is none",
    "pieces": "tokens of each translation with EOS, padded with empty strings",
    "source_pieces": "tokens of each text, padded with empty strings",
    "log_probs": "log probability of the target and EOS, not normalised",
    "ids": "tokens with EOS, padded",
    "lengths": "number of tokens, EOS included",
    "truncated": "whether a limit cut the text",
}


def write_info(
    folder: Path,
    options: Options,
    functions: dict[str, Any],
    tokenizer: Tokenizer | None,
) -> None:
    """Writes `assets.extra/model_info.json` into the folder of a SavedModel."""
    info: dict[str, Any] = {
        "versions": {"keras_attnvariants": __version__, "tensorflow": tf.__version__},
        "options": asdict(options),
        "signatures": {
            name: {"doc": SIGNATURES[name], **signature_info(function)}
            for name, function in functions.items()
        },
    }
    if tokenizer is not None:
        import tensorflow_text

        info["versions"]["tensorflow_text"] = tensorflow_text.__version__
        info["tokenizer_sha256"] = tokenizer.sha256
    path = folder / INFO
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(info, indent=2) + "\n", "utf-8")


def signature_info(function: Any) -> dict[str, Any]:
    """Type, shape and meaning of what a concrete function takes and returns."""
    return {
        "inputs": {
            spec.name: tensor_info(spec)
            for spec in function.structured_input_signature[0]
        },
        "outputs": {
            name: {"doc": OUTPUTS[name], **tensor_info(spec)}
            for name, spec in function.structured_outputs.items()
        },
    }


def tensor_info(spec: tf.TensorSpec) -> dict[str, Any]:
    """Type and shape of a tensor; `null` stands for a size that varies."""
    return {"dtype": spec.dtype.name, "shape": spec.shape.as_list()}
