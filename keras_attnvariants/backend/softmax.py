"""The one softmax over masked logits that every attention variant uses."""

from keras import ops

# Far below any real logit, yet finite: a literal infinity turns a fully masked
# row into NaN, and its gradient with it.
MASKED_LOGIT = -1e9


def masked_softmax(logits, mask=None, axis: int = -1):
    """Softmax in float32 that gives masked entries a weight of exactly 0.

    Rows that are masked entirely get 0 everywhere, with gradients of 0.

    Args:
        logits: float tensor of any shape and dtype.
        mask: boolean tensor that broadcasts to `logits`, True for entries that
            take part; `None` for all of them.
        axis: the axis whose weights sum to 1.

    Returns:
        Weights in float32, of the shape of `logits`.
    """
    logits = ops.cast(logits, "float32")
    if mask is None:
        return softmax(logits, axis)
    weights = softmax(ops.where(mask, logits, MASKED_LOGIT), axis)
    return ops.where(mask, weights, 0.0)


def softmax(logits, axis: int):
    """`keras.ops.softmax`, without its warning of an axis with one entry.

    A source of one token is ordinary here, and has a gradient (of 0) like any other.
    """
    if logits.shape[axis] == 1:
        return logits * 0.0 + 1.0
    return ops.softmax(logits, axis=axis)
