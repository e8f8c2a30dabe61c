"""Floating-point operations of an update, and what devices exchange after it."""

import math

import keras

from keras_attnvariants.attention import DotProductAttention

# A multiply-add is two operations; the gradients of the weights take as many again,
# and so do the gradients of the inputs.
FORWARD_AND_BACKWARD = 3


def update_flops(model: keras.Model, rows: int, source: int, target: int) -> float:
    """Operations of the matrix products of an update; other operations are few.

    Counted are the kernels at all positions that they are applied to, the projection to
    logits, and, for `DotProductAttention` and its subclasses, the products of queries
    with keys and of weights with values, regardless of masks. Computations of other
    variants besides their kernels, such as recurrences, are not counted.

    Args:
        model: a `Transformer`.
        rows: sentences in the batch.
        source, target: positions of each sentence.
    """
    positions = {"encoder": source, "decoder": target}
    total = 0.0
    for weight in model.trainable_weights:
        side = weight.path.split("/")[1].partition("_")[0]
        if side in positions and len(weight.shape) > 1:
            is_of_source = "cross_attention/key" in weight.path
            is_of_source |= "cross_attention/value" in weight.path
            length = source if is_of_source else positions[side]
            total += 2 * length * math.prod(weight.shape)
    total += 2 * target * model.hidden_dim * model.vocabulary_size
    for blocks, length in (
        (model.encoder_blocks, source),
        (model.decoder_blocks, target),
    ):
        for block in blocks:
            total += products(block.self_attention, length, length)
            total += products(getattr(block, "cross_attention", None), length, source)
    return FORWARD_AND_BACKWARD * rows * total


def products(attention: keras.layers.Layer | None, target: int, source: int) -> float:
    """Operations of the products of learned attention over one sentence."""
    if not isinstance(attention, DotProductAttention):
        return 0.0
    widths = attention.head_key_dim + attention.head_dim
    return 2.0 * attention.num_heads * widths * target * source


def gradient_bytes(model: keras.Model) -> int:
    """Bytes of the gradients of all weights in float32, as devices exchange them."""
    return 4 * sum(math.prod(weight.shape) for weight in model.trainable_weights)
