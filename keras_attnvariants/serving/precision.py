"""What an exported model computes in, and what that means for its translations."""

from typing import Any
from typing import NamedTuple

import keras

from keras_attnvariants.models.policies import with_policy

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
