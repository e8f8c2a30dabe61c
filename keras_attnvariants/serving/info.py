"""The file that describes a SavedModel to its users: limits, precision, signatures."""

import json
import os
from collections.abc import Iterable
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import tensorflow as tf

from keras_attnvariants import __version__
from keras_attnvariants.data import Tokenizer
from keras_attnvariants.decoding import IMPOSSIBLE
from keras_attnvariants.serving.inputs import Signature
from keras_attnvariants.serving.operators import called_functions
from keras_attnvariants.serving.operators import read_saved_model
from keras_attnvariants.serving.options import Options
from keras_attnvariants.serving.precision import Precision
from keras_attnvariants.serving.results import STATUS_DOCS
from keras_attnvariants.serving.versions import INFO

SIGNATURES = {
    "serving_default": "the best translation of each sentence",
    "nbest": "the best translations of each text",
    "align": "the best translation of each text: its tokens and what they come from",
    "score": "how probable each target is as a translation of its source",
    "translate_with": "the best translation of each text, under constraints of its own",
    "sample": "a translation of each text, drawn by its seed",
    "translate_ids": "the best translation of token ids; needs no TensorFlow Text",
}

OUTPUTS = {
    "translations": "best first; empty for an empty text",
    "scores": "log probability, EOS included, normalised by length; "
    f"{IMPOSSIBLE:g} if there is no translation",
    "alignments": "attention of each token to each source token; 0 if there is none",
    "pieces": "tokens of the translation or target with EOS, padded with empty strings",
    "source_pieces": "tokens of each text, padded with empty strings",
    "log_probs": "log probability of the translation or target and EOS, not normalised",
    "token_log_probs": "log probability of each token after those before it; 0 for "
    "padding",
    "ids": "tokens with EOS, padded",
    "lengths": "number of tokens, EOS included",
    "truncated": "whether a limit cut the text",
    "status": "0 if the sentence was translated; the other codes are under `status`",
}


def write_info(
    folder: Path,
    options: Options,
    precision: Precision,
    signatures: dict[str, Signature],
    tokenizer: Tokenizer | None,
) -> None:
    """Writes `assets.extra/model_info.json` into the folder of a SavedModel."""
    info: dict[str, Any] = {
        "versions": {"keras_attnvariants": __version__, "tensorflow": tf.__version__},
        "options": asdict(options),
        "precision": precision._asdict(),
        "operators_per_step": operators_per_step(folder),
        "status": {str(int(code)): doc for code, doc in STATUS_DOCS.items()},
        "signatures": {
            name: {"doc": SIGNATURES[name], **signature_info(signature)}
            for name, signature in signatures.items()
        },
    }
    if tokenizer is not None:
        import tensorflow_text

        info["versions"]["tensorflow_text"] = tensorflow_text.__version__
        info["tokenizer_sha256"] = tokenizer.sha256
    path = folder / INFO
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(info, indent=2) + "\n", "utf-8")


def signature_info(signature: Signature) -> dict[str, Any]:
    """Type, shape and meaning of what a signature takes and returns.

    `null` in a shape stands for a size that varies.
    """
    outputs = signature.graph.get_concrete_function().structured_outputs
    return {
        "inputs": {
            i.name: {"doc": i.doc, "dtype": i.dtype.name, "shape": i.shape}
            for i in signature.inputs
        },
        "outputs": {
            name: {
                "doc": OUTPUTS[name],
                "dtype": spec.dtype.name,
                "shape": spec.shape.as_list(),
            }
            for name, spec in outputs.items()
        },
    }


LOOPS = ("While", "StatelessWhile")

# What takes no time of its own: arguments, constants, and names of other outputs.
FREE = frozenset({"Const", "Identity", "IdentityN", "NoOp", "Placeholder"})


def operators_per_step(path: str | os.PathLike[str]) -> int:
    """How many operators a decoding step runs, functions that it calls included.

    Constants and `Identity` are not counted. Nothing is loaded or run. TensorFlow may
    fuse some of the operators when it does.

    Args:
        path: folder of one version.

    Returns:
        Those of the longest loop body without a loop in it; 0 if there is none.
    """
    library = read_saved_model(path).meta_graphs[0].graph_def.library.function
    functions = {f.signature.name: f.node_def for f in library}
    bodies = {
        node.attr["body"].func.name
        for nodes in functions.values()
        for node in nodes
        if node.op in LOOPS
    }
    found = [list(inlined(functions[name], functions)) for name in bodies]
    lengths = [len(names) for names in found if not set(LOOPS) & set(names)]
    return max(lengths, default=0)


def inlined(nodes: Iterable[Any], functions: dict[str, Iterable[Any]]) -> Iterator[str]:
    """The operators of nodes, with those of functions in the place of their calls."""
    for node in nodes:
        called = [node.op] if node.op in functions else called_functions(node)
        if node.op in LOOPS or (not called and node.op not in FREE):
            yield node.op
        for name in called:
            yield from inlined(functions[name], functions)
