"""Layers that break the rules of Keras layers."""

import keras
from keras import ops

from keras_attnvariants.attention import DotProductAttention
from keras_attnvariants.backend import Dropout
from tests.attention.broken.registry import broken


@broken("encoder", "every_dropout_layer_drops_in_training_only", num_heads=4)
class DropsInInference(DotProductAttention):
    """Dropout is applied in inference as well as in training."""

    def drop(self, weights, training):
        return super().drop(weights, True)


@broken(
    "encoder",
    "every_dropout_layer_drops_in_training_only",
    "dropout_survives_saving",
    num_heads=4,
)
class NeverDrops(DotProductAttention):
    """A dropout rate with a name of its own is never applied."""

    def __init__(self, num_heads, output_dropout=0.0, **kwargs):
        super().__init__(num_heads, **kwargs)
        self.output_dropout = output_dropout
        self.last = Dropout(output_dropout)

    def get_config(self):
        return {**super().get_config(), "output_dropout": self.output_dropout}


@broken(
    "encoder", "keras_file_round_trip", "config_survives_json", num_heads=4, key_dim=3
)
class ForgetsArgument(DotProductAttention):
    """The config lacks an argument of the constructor."""

    def get_config(self):
        config = super().get_config()
        del config["key_dim"]
        return config


@broken("encoder", "every_argument_of_every_parent_survives_json", num_heads=4)
class LosesRegularizer(DotProductAttention):
    """The config lacks an argument of a parent's constructor."""

    def get_config(self):
        config = super().get_config()
        del config["kernel_regularizer"]
        return config


class Product(keras.layers.Layer):
    """A dense layer that cannot be quantised."""

    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self.units = units

    def build(self, shape):
        self.kernel = self.add_weight((shape[-1], self.units), name="kernel")

    def call(self, inputs):
        return ops.matmul(inputs, self.kernel)


@broken("cross", "int8_quantisation", num_heads=4)
class KeepsFloatKernel(DotProductAttention):
    """A kernel stays in float32 when the model is quantised."""

    def dense_output(self, context_width, width):
        layer = Product(width, name="output", dtype=self.dtype_policy)
        layer.build((None, context_width))
        return layer


@broken("encoder", "symbolic_equals_eager", num_heads=4)
class WrongScoresShape(DotProductAttention):
    """Symbolic calls return another shape than real calls."""

    def compute_scores_shape(self, query_shape, value_shape):
        batch, heads, *lengths = super().compute_scores_shape(query_shape, value_shape)
        return (batch, 2 * heads, *lengths)


@broken("encoder", "build_creates_all_state", num_heads=4)
class BuildsLate(DotProductAttention):
    """Weights are created by the first call."""

    def project_output(self, context, training=False):
        if not hasattr(self, "late"):
            self.late = keras.layers.Dense(1, use_bias=False)
            self.late(ops.ones((1, 1)))
        return super().project_output(context, training)
