"""Encoder and decoder blocks: attention and feed-forward around residuals.

Any sub-layer can be absent; its residual, dropout and normalisation go with it.
"""

from typing import Any

import keras

from keras_attnvariants.backend import Dense
from keras_attnvariants.backend import Dropout
from keras_attnvariants.backend import LayerNormalization

PLACEMENTS = ("pre", "post")


class Residual(keras.layers.Layer):
    """The residual connection around one sub-layer.

    `x + dropout(f(norm(x)))` with normalisation `"pre"`, `norm(x + dropout(f(x)))`
    with `"post"`, `x + dropout(f(x))` with `None`: `f` is applied between `enter`
    and `leave`.
    """

    def __init__(self, normalization: str | None, dropout: float, **kwargs: Any):
        super().__init__(**kwargs)
        self.normalization = normalization
        self.norm = normalization and layer_norm(self.dtype_policy)
        self.dropout = Dropout(dropout, dtype=self.dtype_policy)

    def build(self, input_shape):
        if self.norm is not None:
            self.norm.build(input_shape)

    def enter(self, x):
        """The input of the sub-layer."""
        return self.norm(x) if self.normalization == "pre" else x

    def leave(self, x, update, training=None):
        """The output of the connection, from its input and the sub-layer's output."""
        x = x + self.dropout(update, training=training)
        return self.norm(x) if self.normalization == "post" else x


class FeedForward(keras.layers.Layer):
    """`activation(x W_1 + b_1) W_2 + b_2`, with dropout on the hidden layer."""

    def __init__(
        self, intermediate_dim: int, activation: str, dropout: float, **kwargs: Any
    ):
        super().__init__(**kwargs)
        self.intermediate_dim = intermediate_dim
        # Glorot with the gain sqrt(2) of a rectifier.
        self.intermediate_dense = Dense(
            intermediate_dim,
            activation=activation,
            kernel_initializer=keras.initializers.VarianceScaling(
                2.0, mode="fan_avg", distribution="uniform"
            ),
            dtype=self.dtype_policy,
            name="intermediate",
        )
        self.dropout = Dropout(dropout, dtype=self.dtype_policy)

    def build(self, input_shape):
        self.intermediate_dense.build(input_shape)
        self.output_dense = Dense(
            input_shape[-1], dtype=self.dtype_policy, name="output"
        )
        self.output_dense.build((*input_shape[:-1], self.intermediate_dim))

    def call(self, x, training=None):
        hidden = self.dropout(self.intermediate_dense(x), training=training)
        return self.output_dense(hidden)


class Block(keras.layers.Layer):
    """What encoder and decoder blocks share: self-attention and feed-forward.

    Args:
        self_attention: attention layer, or `None`.
        feed_forward: `FeedForward` layer, or `None`.
        normalization: `"pre"` or `"post"`.
        dropout: rate on the output of every sub-layer.
    """

    def __init__(
        self, self_attention, feed_forward, normalization, dropout, **kwargs: Any
    ):
        super().__init__(**kwargs)
        self.normalization = normalization
        self.dropout_rate = dropout
        self.self_attention = self_attention
        self.feed_forward = feed_forward
        self.self_residual = self.residual(self_attention, "self_residual")
        self.feed_forward_residual = self.residual(feed_forward, "ff_residual")

    def residual(self, sublayer, name: str):
        """The connection around a sub-layer, absent if the sub-layer is."""
        if sublayer is None:
            return None
        normalization = self.normalization
        if normalization == "pre" and not getattr(sublayer, "reads_query", True):
            # A norm that nothing reads would never get a gradient.
            normalization = None
        dropout = 0.0 if getattr(sublayer, "drops_output", False) else self.dropout_rate
        return Residual(normalization, dropout, dtype=self.dtype_policy, name=name)

    def build(self, input_shape):
        if self.self_attention is not None:
            self.self_attention.build(input_shape, input_shape)
            self.self_residual.build(input_shape)
        if self.feed_forward is not None:
            self.feed_forward.build(input_shape)
            self.feed_forward_residual.build(input_shape)

    def attend(
        self, role: str, x, value=None, training=None, return_scores=False, **options
    ):
        """An attention sub-layer over a whole sequence.

        Args:
            role: `"self"` or `"cross"`.
            x: `[B, T, width]`.
            value: what cross-attention looks at, `[B, S, width]`.
            training: whether dropout is applied.
            return_scores: whether the weights are wanted.
            **options: further arguments of the attention layer.

        Returns:
            `[B, T, width]`, and the weights by role; nothing if they are not wanted,
            or if the sub-layer is absent or has none.
        """
        attention = getattr(self, f"{role}_attention")
        if attention is None:
            return x, {}
        residual = getattr(self, f"{role}_residual")
        y = residual.enter(x)
        value = y if value is None else value
        options["training"] = training
        if return_scores and attention.has_scores:
            y, scores = attention(y, value, return_attention_scores=True, **options)
            return residual.leave(x, y, training), {role: scores}
        return residual.leave(x, attention(y, value, **options), training), {}

    def feed(self, x, training=None):
        """The feed-forward sub-layer."""
        if self.feed_forward is None:
            return x
        y = self.feed_forward(self.feed_forward_residual.enter(x), training=training)
        return self.feed_forward_residual.leave(x, y, training)


class EncoderBlock(Block):
    """Self-attention and feed-forward over a source sequence."""

    def call(self, x, source_mask=None, training=None, return_attention_scores=False):
        """`[B, S, width]` to the same; `source_mask` is bool.

        With scores also the weights of attention, `[B, H, S, S]`, by role.
        """
        x, scores = self.attend(
            "self",
            x,
            training=training,
            return_scores=return_attention_scores,
            value_mask=source_mask,
        )
        x = self.feed(x, training)
        return (x, scores) if return_attention_scores else x


class DecoderBlock(Block):
    """Causal self-attention, cross-attention and feed-forward."""

    def __init__(self, self_attention, cross_attention, *args: Any, **kwargs: Any):
        super().__init__(self_attention, *args, **kwargs)
        self.cross_attention = cross_attention
        self.cross_residual = self.residual(cross_attention, "cross_residual")

    def build(self, input_shape):
        super().build(input_shape)
        if self.cross_attention is not None:
            self.cross_attention.build(input_shape, input_shape)
            self.cross_residual.build(input_shape)

    def call(
        self,
        x,
        encoded,
        encoded_mask=None,
        training=None,
        return_attention_scores=False,
    ):
        """`[B, T, width]` and the encoded source `[B, S, width]` to `[B, T, width]`.

        With scores also the weights of both attentions by role.
        """
        options = {"training": training, "return_scores": return_attention_scores}
        x, scores = self.attend("self", x, use_causal_mask=True, **options)
        x, cross_scores = self.attend(
            "cross", x, encoded, value_mask=encoded_mask, **options
        )
        x = self.feed(x, training)
        return (x, scores | cross_scores) if return_attention_scores else x

    def prepare(self, encoded, encoded_mask):
        """What the block keeps of the source, once per sentence."""
        if self.cross_attention is None:
            return {}
        return self.cross_attention.prepare(encoded, encoded_mask)

    def initial_state(self, batch, beams: int, max_length: int, memory):
        """The state of both attentions before the first position."""
        state = {}
        if self.self_attention is not None:
            state["self"] = self.self_attention.initial_state(batch, beams, max_length)
        if self.cross_attention is not None:
            state["cross"] = self.cross_attention.initial_state(
                batch, beams, max_length, memory
            )
        return state

    def step(self, x, position, state, memory, return_attention_scores=False):
        """One position `[B, K, width]`: output, state, alignment or `None`."""
        state, scores = dict(state), None
        if self.self_attention is not None:
            y, state["self"] = self.self_attention.step(
                self.self_residual.enter(x), position, state["self"]
            )
            x = self.self_residual.leave(x, y)
        if self.cross_attention is not None:
            wanted = return_attention_scores and self.cross_attention.has_scores
            y, state["cross"], *scores = self.cross_attention.step(
                self.cross_residual.enter(x),
                position,
                state["cross"],
                memory,
                return_attention_scores=wanted,
            )
            x = self.cross_residual.leave(x, y)
            scores = self.cross_attention.alignment(scores[0]) if scores else None
        return self.feed(x), state, scores


def run_blocks(blocks, x, scores: dict[str, Any] | None = None, **options: Any):
    """The output of blocks one after another, `[B, L, width]`.

    Args:
        blocks: encoder or decoder blocks.
        x: `[B, L, width]`.
        scores: a dict to which each block's attention weights are added under its
            name; `None` if they are not wanted.
        **options: further arguments of every block.
    """
    for block in blocks:
        if scores is None:
            x = block(x, **options)
        else:
            x, scores[block.name] = block(x, return_attention_scores=True, **options)
    return x


def layer_norm(dtype, name: str = "norm") -> LayerNormalization:
    """Layer normalisation as every model here uses it."""
    return LayerNormalization(epsilon=1e-5, dtype=dtype, name=name)
