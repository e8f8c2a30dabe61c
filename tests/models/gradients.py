"""Gradients of a model's loss, in tests of several models."""

import keras
import numpy as np
from keras import ops

from keras_attnvariants import backend
from tests.models import tiny


def batch_and_labels():
    batch = tiny.inputs()
    labels = np.pad(batch["target_ids"][:, 1:], ((0, 0), (0, 1)))
    return batch, labels


def loss_and_logits(model, batch, labels):
    logits = model(batch, training=False)
    loss = ops.mean(
        ops.sparse_categorical_crossentropy(
            labels, ops.cast(logits, "float32"), from_logits=True
        )
    )
    return loss, logits


def logits_and_gradients(model, batch, labels):
    """Logits, and the gradients of the mean cross-entropy for trainable weights."""
    batch = keras.tree.map_structure(ops.convert_to_tensor, batch)
    if backend.name() == "tensorflow":
        import tensorflow as tf

        with tf.GradientTape() as tape:
            loss, logits = loss_and_logits(model, batch, labels)
        return logits, tape.gradient(loss, [w.value for w in model.trainable_weights])
    import jax

    def function(values):
        pairs = list(zip(model.trainable_weights, values, strict=True))
        with keras.StatelessScope(state_mapping=pairs):
            return loss_and_logits(model, batch, labels)

    values = [w.value for w in model.trainable_weights]
    gradients, logits = jax.jit(jax.grad(function, has_aux=True))(values)
    return logits, gradients
