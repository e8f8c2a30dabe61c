"""The precision of an exported model, and what it means for translations."""

from typing import Any
from typing import NamedTuple

from keras_attnvariants import backend
from keras_attnvariants.attention import BaseAttention
from keras_attnvariants.backend.private import nested_layers
from keras_attnvariants.models.base import EncoderDecoder
from keras_attnvariants.models.templates import with_policy
from keras_attnvariants.serving.verification import ProcessorError
from keras_attnvariants.utils.checks import check_choice
from keras_attnvariants.utils.machine import processor

# The precisions in which `export` writes a model; see its docstring.
PRECISIONS = ("auto", "float32", "bfloat16", "int8", "int8-weights")

POLICIES = {"float32": "float32", "bfloat16": "mixed_bfloat16"}


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
        precision = "int8-weights" if quantization else backend.faster_floats()
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
