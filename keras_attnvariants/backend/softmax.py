"""The softmax over masked logits, and fused attention."""

from keras import ops

from keras_attnvariants.backend.compilation import device_kind
from keras_attnvariants.backend.compilation import name
from keras_attnvariants.backend.compilation import on_cpu
from keras_attnvariants.utils.typing import Tensor

# Far below any real logit, yet finite: with a literal infinity, a fully masked row and
# its gradient would be NaN.
MASKED_LOGIT = -1e9
# With fewer keys, cuDNN's kernel is left out. On an H100, with a mask, forward and
# backward, it takes 1.25 times as long as products with 128 keys, 0.29 with 4,096.
KERNEL_KEYS = 512


def masked_softmax(logits: Tensor, mask: Tensor | None = None) -> Tensor:
    """Softmax in float32 that gives masked entries a weight of exactly 0.

    A row whose entries are all masked has weights of 0, with gradients of 0.

    Args:
        logits: float tensor of any shape and dtype.
        mask: bool tensor that broadcasts to `logits`, true for entries that take part;
            `None` for all of them.

    Returns:
        Weights in float32, of the shape of `logits`, whose last axis sums to 1.

    Example:

    >>> weights = masked_softmax(ops.zeros((1, 3)), ops.array([True, True, False]))
    >>> [float(weight) for weight in weights[0]]
    [0.5, 0.5, 0.0]
    """
    logits = ops.cast(logits, "float32")
    if mask is None:
        return softmax(logits)
    weights = softmax(ops.where(mask, logits, MASKED_LOGIT))
    return ops.where(mask, weights, 0.0)


def softmax(logits: Tensor) -> Tensor:
    """`keras.ops.softmax`, without its warning about a last axis with one entry.

    A source of one token is not an error here. Its weight is 1 and its gradient is 0,
    not `None`, about which an optimizer would warn.
    """
    if logits.shape[-1] == 1:
        return logits * 0.0 + 1.0
    return ops.softmax(logits)


def has_fused_attention() -> bool:
    """Whether `fused_attention` is the faster form: on JAX, with a GPU or TPU.

    On TensorFlow and on CPUs it computes the same products one after the other.
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
        flash: whether a flash attention kernel must be used, or must not; `None` to use
            one if it exists for these shapes and is faster.

    Raises:
        ValueError, RuntimeError: `flash` is True, and there is no kernel.
    """
    lengths = [ops.shape(each)[1] for each in inputs[:2]]
    # Keras' TPU kernel uses only the mask of the first sentence, and no bias.
    is_wrong = device_kind() == "tpu" and not (mask is None and bias is None)
    is_slow = device_kind() == "gpu" and lengths[1] < KERNEL_KEYS
    if flash is None and (is_wrong or is_slow):
        flash = False
    if mask is not None:
        # cuDNN's kernel refuses masks that are not of every query.
        mask = ops.broadcast_to(mask, (ops.shape(mask)[0], *lengths))
    return ops.dot_product_attention(
        *inputs,
        bias=None if bias is None else bias[None],
        mask=None if mask is None else mask[:, None],
        scale=1.0,
        is_causal=causal,
        flash_attention=flash,
    )
