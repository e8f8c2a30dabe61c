"""What an exported model computes in, and what that means for its translations."""

import warnings
from typing import Any
from typing import NamedTuple

import keras

from keras_attnvariants.attention import BaseAttention
from keras_attnvariants.backend.private import nested_layers
from keras_attnvariants.models.base import TranslationModel
from keras_attnvariants.models.base import with_policy

# What `wide_model` computes in.
WIDE = "float32"

_EXACT = (
    "Sums are accurate to about seven digits: the translation of a sentence does not "
    "depend on the others in its request."
)
_ROUNDED = (
    "Intermediate results are rounded to two or three digits, and their last bits "
    "follow the number of sentences in a request: where two translations score about "
    "the same, a sentence may have one alone and the other in a batch. Export with "
    "`exact=True` (`kav export --exact`) to avoid that."
)


class Precision(NamedTuple):
    """What a model computes in.

    Attributes:
        dtype: of intermediate results, such as `"bfloat16"`.
        quantization: the mode in which the weights are quantized, or `None`.
        exact: whether the translation of a sentence is the same in every batch.
        doc: the same in words.
    """

    dtype: str
    quantization: str | None
    exact: bool
    doc: str

    @classmethod
    def of(cls, model: Any) -> "Precision":
        """The precision of any step model; one that does not tell has float32."""
        dtype = getattr(model, "compute_dtype", "float32")
        quantization = getattr(model, "quantization", None)
        exact = dtype in ("float32", "float64") and quantization is None
        return cls(dtype, quantization, exact, _EXACT if exact else _ROUNDED)


def wide_model(model: Any) -> Any:
    """A quantized model whose products of integers need no other floats than float32.

    Attention is as exact as it was (`BaseAttention.round_as`).

    Args:
        model: any step model; those that are not of this package remain as they are.
    """
    if not isinstance(model, TranslationModel) or Precision.of(model).dtype == WIDE:
        return model
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Keras tells what has nothing to quantize
        wide = with_policy(model, WIDE)
    for old, new in zip(nested_layers(model), nested_layers(wide), strict=True):
        if isinstance(new, BaseAttention):
            new.round_as(old.compute_dtype)
    return wide


def exact_model(model: keras.Model) -> keras.Model:
    """The model itself if it is exact, or else one that computes in float32.

    Raises:
        ValueError: the model is quantized.
    """
    precision = Precision.of(model)
    if precision.exact:
        return model
    if precision.quantization is not None:
        raise ValueError(
            "`exact` needs a model that is not quantized, because that rounds what it "
            f"multiplies. Received: a model quantized to {precision.quantization}"
        )
    return with_policy(model, "float32")
