"""Compiled programs of one self-attention layer: forward, backward, a decoding step."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

import keras_attnvariants as kav

# A single step is too short to time.
STEPS = 20


def forward(layer, shape, causal: bool, xla: bool) -> Callable[[], Any]:
    """The output for a batch of shape `[B, L, width]`, as in training.

    Args:
        layer: a built attention layer.
        shape: shape of the batch.
        causal: whether it is used in a decoder; in an encoder it gets a mask.
        xla: as in `kav.backend.jit`.
    """
    return waiting(kav.backend.jit(output(layer, causal), xla), *batch(shape, causal))


def forward_and_backward(layer, shape, causal: bool, xla: bool) -> Callable[[], Any]:
    """The output, and the gradients with respect to the batch and all weights."""
    known = {"tensorflow": tensorflow_gradients, "jax": jax_gradients}
    gradients = known[kav.backend.name()](layer, causal)
    upstream = ops.ones(shape, layer.compute_dtype)
    return waiting(kav.backend.jit(gradients, xla), *batch(shape, causal), upstream)


def steps(layer, shape, position: int, xla: bool) -> Callable[[], Any]:
    """Some decoding steps at a position: `[B, 1, width]`, a hypothesis per sentence."""
    state = layer.initial_state(shape[0], beams=1, max_length=position + 1)
    x, _ = batch(shape, causal=True)

    def decode(x, position, state):
        return layer.step(x, position, state)

    compiled = kav.backend.jit(decode, xla)
    arguments = x, ops.convert_to_tensor(position, "int32"), state
    once = waiting(compiled, *arguments)

    def run():
        for _ in range(STEPS):
            once()

    return run


def batch(shape, causal: bool):
    """Random inputs, and the mask of an encoder."""
    x = keras.random.normal(shape, seed=1)
    return x, None if causal else ops.ones(shape[:2], "bool")


def output(layer, causal: bool) -> Callable:
    """The layer as a function of inputs and mask."""

    def attend(x, mask):
        return layer(x, x, value_mask=mask, use_causal_mask=causal, training=True)

    return attend


def tensorflow_gradients(layer, causal: bool) -> Callable:
    """The gradients as a function of inputs, mask and gradient of the output."""
    import tensorflow as tf

    attend = output(layer, causal)

    def gradients(x, mask, upstream):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = attend(x, mask)
        return tape.gradient(y, [x, *layer.trainable_weights], upstream)

    return gradients


def jax_gradients(layer, causal: bool) -> Callable:
    """The gradients as a function of inputs, mask and gradient of the output."""
    import jax

    weights, others = (
        [weight.value for weight in group]
        for group in (layer.trainable_weights, layer.non_trainable_weights)
    )
    options = {"use_causal_mask": causal, "training": True}

    def gradients(x, mask, upstream):
        def attend(x, weights):
            return layer.stateless_call(
                weights, others, x, x, value_mask=mask, **options
            )[0]

        return jax.vjp(attend, x, weights)[1](upstream)

    return gradients


def waiting(program: Callable, *arguments: Any) -> Callable[[], Any]:
    """A function that runs a program and waits for its result."""

    def run():
        first = keras.tree.flatten(program(*arguments))[0]
        return ops.convert_to_numpy(first)

    return run
