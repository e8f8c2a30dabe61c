"""The precision of an exported model, and what it means for translations."""

from collections.abc import Callable
from functools import partial
from statistics import geometric_mean
from typing import Any
from typing import NamedTuple

import tensorflow as tf

from keras_attnvariants import backend
from keras_attnvariants.attention import BaseAttention
from keras_attnvariants.backend.compilation import clock
from keras_attnvariants.backend.private import nested_layers
from keras_attnvariants.decoding import beam_search
from keras_attnvariants.models.base import EncoderDecoder
from keras_attnvariants.models.templates import with_policy
from keras_attnvariants.serving.exported import ExportedModel
from keras_attnvariants.serving.exported import StoredWeights
from keras_attnvariants.serving.verification import ProcessorError
from keras_attnvariants.utils.checks import check_choice
from keras_attnvariants.utils.machine import processor
from keras_attnvariants.utils.machine import shortest_seconds
from keras_attnvariants.utils.typing import Tensor

# The precisions in which `export` writes a model; see its docstring.
PRECISIONS = ("auto", "float32", "bfloat16", "int8", "int8-weights")

POLICIES = {"float32": "float32", "bfloat16": "mixed_bfloat16"}

# bfloat16 rounds, so it has to be faster than float32 by more than the noise.
WORTHWHILE = 0.95

# The searches that are timed: sentences in a request, positions of sources and targets,
# and seconds for each request.
REQUESTS = (1, 32)
SOURCE_LENGTH, TARGET_LENGTH = 16, 8
SECONDS = 1.0


class Precision(NamedTuple):
    """The precision in which a model computes.

    Attributes:
        dtype: dtype of intermediate results, such as `"bfloat16"`.
        quantization: the mode in which the weights are quantized, or `None`.
        exact: whether the translation of a sentence is the same in every batch:
            otherwise intermediate results are rounded to two or three digits, and
            their last bits depend on the number of sentences in a request.
    """

    dtype: str
    quantization: str | None
    exact: bool

    @classmethod
    def of(cls, model: Any) -> "Precision":
        """The precision of any step model; by default float32."""
        dtype = getattr(model, "compute_dtype", "float32")
        quantization = getattr(model, "quantization", None)
        exact = dtype in ("float32", "float64") and quantization is None
        return cls(dtype, quantization, exact)


def model_in(model: Any, precision: str | None) -> Any:
    """A model in the precision in which it is to be exported.

    With `"int8-weights"`, everything but the stored integers has the faster floats;
    with `"int8"`, float32.

    Args:
        model: any step model; it is not changed.
        precision: one of `PRECISIONS`; `None` for the model itself.

    Raises:
        ValueError: there is no such precision, or the model is quantized: in any mode
            if the precision is one of floats, otherwise in a mode other than `"int8"`.
        ProcessorError: it would multiply 8-bit integers, which are not exact here.
    """
    if precision is None:
        return model
    check_choice("precision", precision, PRECISIONS)
    dtype, quantization, _ = Precision.of(model)
    if precision == "auto":
        precision = "int8-weights" if quantization else faster_floats(model)[0]
    if precision == "int8" and not backend.is_onednn_exact():
        raise ProcessorError(
            "`precision` int8 needs TensorFlow with oneDNN and a processor with "
            "AVX512-VNNI or AVX-VNNI, here and on servers: others do not multiply "
            "8-bit integers exactly. `int8-weights` runs anywhere. Received: "
            f"{processor()}"
        )
    is_float = precision in POLICIES
    if quantization is not None and (is_float or quantization != "int8"):
        raise ValueError(
            f"`precision` {precision!r} needs a model that is not quantized"
            f"{'' if is_float else ' otherwise'}. Received: a model quantized to "
            f"{quantization}"
        )
    if is_float:
        return model if dtype == precision else with_policy(model, POLICIES[precision])
    if quantization is None:
        model = with_integers(model, POLICIES[backend.faster_floats()])
    return wide_model(model) if precision == "int8" else model


def faster_floats(model: Any) -> tuple[str, float | None]:
    """The floats in which an exported model translates faster on this machine.

    Short searches of the model are timed in both, which takes a few seconds. Where
    TensorFlow rounds partial sums of products in bfloat16, float32 is taken at once.

    Args:
        model: any step model that is not quantized; it is not changed.

    Returns:
        `"bfloat16"` or `"float32"`, and the time of a search in bfloat16 over that in
        float32: the geometric mean over requests of 1 and of 32 sentences; `None` if
        nothing was timed.
    """
    if not backend.sums_bfloat16_in_float32():
        return "float32", None
    searches = {each: short_search(model_in(model, each)) for each in POLICIES}
    costs = []
    for count in REQUESTS:
        runs = {each: partial(search, count) for each, search in searches.items()}
        seconds = shortest_seconds(runs, clock(), limit=SECONDS)
        costs.append(seconds["bfloat16"] / seconds["float32"])
    cost = geometric_mean(costs)
    return "bfloat16" if cost < WORTHWHILE else "float32", cost


def short_search(model: Any) -> Callable[[int], Any]:
    """A function that runs an exported model's beam search for a number of sentences.

    All translations have `TARGET_LENGTH` tokens.
    """
    steps: Any = ExportedModel(model, StoredWeights(model), constant=True)
    length = min(TARGET_LENGTH, model.max_length)
    width = min(SOURCE_LENGTH, model.max_length) * getattr(model, "source_stride", 1)

    @tf.function(
        autograph=False, input_signature=[tf.TensorSpec([None, width], "int32")]
    )
    def scores(ids: Tensor) -> Tensor:
        found = beam_search(steps, ids, min_length=length - 1, max_length=length)
        return found.scores

    return lambda count: scores(
        tf.fill([count, width], model.source_vocabulary_size - 1)
    ).numpy()


def with_integers(model: Any, policy: str) -> Any:
    """A copy of a model with matrices of 8-bit integers and the floats of a policy."""
    copy = with_policy(model, policy)
    if Precision.of(copy).quantization != "int8":
        copy.quantize("int8")
    return copy


def wide_model(model: Any) -> Any:
    """A quantized model whose only floats are float32.

    Attention is as exact as it was (`BaseAttention.round_as`).

    Args:
        model: any step model; those that are not of this package remain as they are.
    """
    is_wide = Precision.of(model).dtype == "float32"
    if is_wide or not isinstance(model, EncoderDecoder):
        return model
    wide = with_policy(model, "float32")
    for old, new in zip(nested_layers(model), nested_layers(wide), strict=True):
        if isinstance(new, BaseAttention):
            new.round_as(old.compute_dtype)
    return wide
