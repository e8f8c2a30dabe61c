"""Files in the folder of a version beside the graph: for users and for servers.

`assets.extra/model_info.json` describes the version. TensorFlow Serving reads the
others: `batching_params.pbtxt` says how it merges requests. It runs the warm-up
requests before it serves a version, because the first request to each bucket of a
signature is slow.
"""

import json
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from keras_attnvariants import __version__
from keras_attnvariants.data import Tokenizer
from keras_attnvariants.data.audio import wav_of
from keras_attnvariants.data.tasks import task_of
from keras_attnvariants.decoding import IMPOSSIBLE
from keras_attnvariants.serving.folders import INFO
from keras_attnvariants.serving.folders import Template
from keras_attnvariants.serving.inputs import GraphSignature
from keras_attnvariants.serving.inputs import Input
from keras_attnvariants.serving.messages import predict_request
from keras_attnvariants.serving.messages import protos
from keras_attnvariants.serving.options import Options
from keras_attnvariants.serving.options import sizes_up_to
from keras_attnvariants.serving.precision import Precision
from keras_attnvariants.serving.signatures import Signatures
from keras_attnvariants.serving.translator import STATUS_DOCS
from keras_attnvariants.utils.importing import import_tensorflow_text

OUTPUTS = {
    "translations": "hypotheses, best first; empty for an empty source",
    "scores": "log probability, EOS included, normalised by length; "
    f"{IMPOSSIBLE:g} if there is no hypothesis",
    "alignments": "attention of each token to each position of its source; 0 if there "
    "is none",
    "pieces": "tokens of the hypothesis or target with EOS, padded with empty strings",
    "source_pieces": "tokens of each text, or the seconds at which positions of each "
    "recording begin, padded with empty strings",
    "log_probs": "log probability of the hypothesis or target and EOS, not normalised",
    "token_log_probs": "log probability of each token after those before it; 0 for "
    "padding",
    "ids": "tokens with EOS, padded",
    "lengths": "number of tokens, EOS included",
    "truncated": "whether a limit cut the source",
    "status": "0 if all is well; the other codes are under `status`",
}


# `--enable_per_model_batching_parameters` makes the server read it, version by version.
BATCHING = "batching_params.pbtxt"

# TensorFlow Serving reads this file of a version.
WARM_UP = Path("assets.extra") / "tf_serving_warmup_requests"

_SENTENCES = ("text", "source", "target")
_LARGEST_RECORDS = 1000  # limit of TensorFlow Serving


def write_info(
    folder: Path, builder: Signatures, signatures: Mapping[str, GraphSignature]
) -> None:
    """Writes `assets.extra/model_info.json` into the folder of a version."""
    model, tokenizer = builder.model, builder.tokenizer
    info: dict[str, Any] = {
        "versions": {"keras_attnvariants": __version__, "tensorflow": tf.__version__},
        "task": task_of(model).name,
        "options": asdict(builder.options),
        "precision": Precision.of(model)._asdict(),
        "status": {str(int(code)): doc for code, doc in STATUS_DOCS.items()},
        "signatures": {name: signature_info(each) for name, each in signatures.items()},
    }
    if tokenizer is not None:
        info["versions"]["tensorflow_text"] = import_tensorflow_text().__version__
        info["tokenizer_sha256"] = tokenizer.sha256
    path = folder / INFO
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(info, indent=2) + "\n", "utf-8")


def signature_info(signature: GraphSignature) -> dict[str, Any]:
    """Type, shape and meaning of the inputs and outputs of a signature.

    `null` in a shape stands for a size that varies.
    """

    def described(doc: str, dtype: tf.DType, shape: Sequence[None]) -> dict[str, Any]:
        return {"doc": doc, "dtype": dtype.name, "shape": list(shape)}

    outputs = signature.graph.get_concrete_function().structured_outputs.items()
    return {
        "doc": signature.doc,
        "inputs": {
            i.name: described(i.doc, i.dtype, i.shape) for i in signature.inputs
        },
        "outputs": {n: described(OUTPUTS[n], x.dtype, x.shape) for n, x in outputs},
    }


def write_batching(
    folder: Path, max_batch: int, signatures: Mapping[str, GraphSignature]
) -> None:
    """Writes `batching_params.pbtxt` into the folder of a version.

    Args:
        folder: folder of the version.
        max_batch: sentences in a request, at most.
        signatures: those of the version.
    """
    # Only if needed: padding does not check that ranks agree.
    pads = any(i.rank > 1 for each in signatures.values() for i in each.inputs)
    # With few sizes, the server prepares kernels for few shapes.
    sizes = "\n".join(f"allowed_batch_sizes: {n}" for n in sizes_up_to(max_batch))
    values = {"max_batch": max_batch, "pads": str(pads).lower(), "sizes": sizes}
    template = Template(Path(__file__).with_name(BATCHING).read_text("utf-8"))
    (folder / BATCHING).write_text(template.substitute(values), "utf-8")


def write_warm_up(
    folder: Path, builder: Signatures, signatures: Mapping[str, GraphSignature]
) -> None:
    """Writes one request per signature and bucket into the folder of a version."""
    token = builder.model.source_vocabulary_size - 1  # any that is not padding
    given = builder.options, builder.tokenizer, token, builder.nbest_search.stride
    requests = [
        predict_request(protos.ModelSpec(), name, inputs)
        for name, signature in signatures.items()
        for inputs in examples(signature.inputs, *given)
    ]
    with tf.io.TFRecordWriter(str(folder / WARM_UP)) as writer:
        for request in requests[:_LARGEST_RECORDS]:
            log = protos.PredictionLog(predict_log={"request": request})
            writer.write(log.SerializeToString(deterministic=True))


def examples(
    inputs: Sequence[Input],
    options: Options,
    tokenizer: Tokenizer | None,
    token: int,
    stride: int = 1,
) -> Iterator[dict[str, Any]]:
    """Inputs of one sentence for every bucket; options have their defaults."""
    for width in options.buckets:
        text = "" if tokenizer is None or stride > 1 else text_of(tokenizer, width)
        silence = np.zeros((1, width * stride), "float32")
        values = {
            **dict.fromkeys(_SENTENCES, np.array([text.encode()], object)),
            "source_ids": np.full((1, width * stride), token, "int32"),
            "audio": silence,
            "wav": np.array([wav_of(silence[0])], object),
            "lengths": np.array([width * stride], "int32"),
        }
        yield {i.name: values.get(i.name, i.omitted) for i in inputs}


def text_of(tokenizer: Tokenizer, tokens: int) -> str:
    """The longest text of one repeated word that has at most `tokens` tokens."""
    texts = [" ".join(["a"] * count) for count in range(1, tokens + 1)]
    lengths = map(len, tokenizer.encode(texts))
    fitting = [t for t, n in zip(texts, lengths, strict=True) if n <= tokens]
    return fitting[-1] if fitting else texts[0]
