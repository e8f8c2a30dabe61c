"""Attention in one operation, which GPUs and TPUs compute without storing weights."""

from keras import ops

from keras_attnvariants.backend.compilation import name
from keras_attnvariants.backend.compilation import on_cpu
from keras_attnvariants.utils.typing import Tensor


def has_fused_attention() -> bool:
    """Whether `fused_attention` is the faster form: on JAX, with a GPU or TPU.

    On TensorFlow and on CPUs it is the same products, one after the other.
    """
    return name() == "jax" and not on_cpu()


def fused_attention(
    inputs: tuple[Tensor, Tensor, Tensor],
    mask: Tensor | None,
    causal: bool,
    bias: Tensor | None,
    flash: bool | None,
) -> Tensor:
    """`softmax(q k^T + bias) v` of scaled queries, `[B, T, H, D]`.

    Args:
        inputs: `q` `[B, T, H, D]`, `k` and `v` `[B, S, H, D]`.
        mask: bool `[1|B, 1|T, S]`, without causality; `None` for all keys.
        causal: whether query `i` attends only to keys `j <= i`.
        bias: `[H, T, S]`, added to the energies; or `None`.
        flash: whether a kernel must be used, or must not; `None` to use it where there
            is one for these shapes.

    Raises:
        ValueError, RuntimeError: `flash` is True, and there is no kernel.
    """
    if flash is None and (mask is not None or bias is not None) and on_tpu():
        # Keras' kernel for TPUs takes the mask of the first sentence, and no bias.
        flash = False
    return ops.dot_product_attention(
        *inputs,
        bias=None if bias is None else bias[None],
        mask=None if mask is None else mask[:, None],
        scale=1.0,
        is_causal=causal,
        flash_attention=flash,
    )


def on_tpu() -> bool:
    """Whether JAX computes on a TPU."""
    if name() != "jax":
        return False
    import jax

    return str(jax.default_backend()) == "tpu"
