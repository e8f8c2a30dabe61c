"""Files in the folder of a version that TensorFlow Serving reads beside the graph.

`batching_params.pbtxt` says how it merges requests. Warm-up requests are those that it
answers for itself before it takes a version: the first request to a bucket of a
signature is slow, and it should not be a user's.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from keras_attnvariants.data import Tokenizer
from keras_attnvariants.serving.messages import ModelSpec
from keras_attnvariants.serving.messages import PredictionLog
from keras_attnvariants.serving.messages import predict_request
from keras_attnvariants.serving.options import Options

# `--enable_per_model_batching_parameters` makes the server read it, version by version.
BATCHING = "batching_params.pbtxt"

_BATCHING = """\
# Requests of several clients are translated together, but never more sentences than
# the graph accepts. Read with --enable_batching --enable_per_model_batching_parameters.
max_batch_size {{ value: {max_batch} }}
# Microseconds that a request waits for others.
batch_timeout_micros {{ value: 2000 }}
# More are refused as unavailable, so that clients come back later.
max_enqueued_batches {{ value: 16 }}
# Ids are padded; the signatures ignore what is beyond their lengths. Texts need none.
pad_variable_length_inputs: {pads}
{sizes}"""

# TensorFlow Serving reads this file of a version.
WARM_UP = Path("assets.extra") / "tf_serving_warmup_requests"

_SENTENCES = ("text", "source", "target")
_LARGEST_RECORDS = 1000  # of TensorFlow Serving


def write_batching(folder: Path, max_batch: int, signatures: dict[str, Any]) -> None:
    """Writes `batching_params.pbtxt` into the folder of a version.

    Args:
        folder: of the version.
        max_batch: sentences in a request, at most.
        signatures: what `assets.extra/model_info.json` says of them.
    """
    inputs = [i for each in signatures.values() for i in each["inputs"].values()]
    # Only where it is needed: it does not check that ranks agree.
    pads = any(len(i["shape"]) > 1 for i in inputs)
    sizes = "".join(f"allowed_batch_sizes: {n}\n" for n in batch_sizes(max_batch))
    text = _BATCHING.format(max_batch=max_batch, pads=str(pads).lower(), sizes=sizes)
    (folder / BATCHING).write_text(text, "utf-8")


def batch_sizes(max_batch: int) -> list[int]:
    """Sizes that batches are filled up to: by at most a half, up to `max_batch`.

    Few sizes mean few shapes that the server prepares kernels for.
    """
    sizes, power = {max_batch}, 1
    while power < max_batch:
        sizes |= {power, min(power * 3 // 2, max_batch)}
        power *= 2
    return sorted(sizes)


def write_warm_up(
    folder: Path,
    options: Options,
    signatures: dict[str, Any],
    tokenizer: Tokenizer | None,
    token: int,
) -> int:
    """Writes the requests into the folder of a version: one a signature and bucket.

    Args:
        folder: of the version.
        options: with the widths of the buckets.
        signatures: what `assets.extra/model_info.json` says of them.
        tokenizer: of the model, if it reads text.
        token: an id of the vocabulary, for signatures that read ids.

    Returns:
        The number of requests.
    """
    requests = [
        PredictionLog(
            predict_log={"request": predict_request(ModelSpec(), name, inputs)}
        )
        for name, signature in signatures.items()
        for inputs in examples(signature["inputs"], options, tokenizer, token)
    ]
    path = folder / WARM_UP
    path.parent.mkdir(exist_ok=True)
    with tf.io.TFRecordWriter(str(path)) as writer:
        for request in requests[:_LARGEST_RECORDS]:
            writer.write(request.SerializeToString())
    return len(requests)


def examples(
    inputs: dict[str, Any], options: Options, tokenizer: Tokenizer | None, token: int
) -> Iterator[dict[str, Any]]:
    """Inputs of one sentence for every bucket; options have their defaults."""
    for width in options.buckets:
        text = "" if tokenizer is None else text_of(tokenizer, width)
        values = {
            **dict.fromkeys(_SENTENCES, np.array([text.encode()], object)),
            "source_ids": np.full((1, width), token, "int32"),
            "lengths": np.array([width], "int32"),
        }
        yield {name: values.get(name, neutral(spec)) for name, spec in inputs.items()}


def neutral(spec: dict[str, Any]) -> Any:
    """What leaves an option to the export: -1, NaN, false or `""`, for one sentence."""
    shape = [1 if size is None else size for size in spec["shape"]]
    if spec["dtype"] == "string":
        return np.full(shape, b"", object)
    dtype = np.dtype(spec["dtype"])
    return np.full(shape, {"i": -1, "f": np.nan, "b": False}[dtype.kind], dtype)


def text_of(tokenizer: Tokenizer, tokens: int) -> str:
    """The longest text of equal words that has at most so many tokens."""
    texts = [" ".join(["a"] * count) for count in range(1, tokens + 1)]
    fitting = [
        text
        for text, ids in zip(texts, tokenizer.encode(texts), strict=True)
        if len(ids) <= tokens
    ]
    return fitting[-1] if fitting else texts[0]
