"""Encoder and decoder blocks: attention and feed-forward around residuals.

Any sub-layer can be absent, and its residual, dropout and normalization with it.
"""

from collections.abc import Iterable
from typing import Any

import keras

from keras_attnvariants.attention import BaseAttention
from keras_attnvariants.models.sublayers import FeedForward
from keras_attnvariants.models.sublayers import Residual
from keras_attnvariants.utils.typing import NestedTensors
from keras_attnvariants.utils.typing import Shape
from keras_attnvariants.utils.typing import Size
from keras_attnvariants.utils.typing import State
from keras_attnvariants.utils.typing import Tensor

# Attention weights by role, `"self"` or `"cross"`.
Scores = dict[str, Tensor]


class Block(keras.layers.Layer):
    """The common part of encoder and decoder blocks: self-attention, feed-forward.

    Args:
        self_attention: attention layer, or `None`.
        feed_forward: `FeedForward` layer, or `None`.
        normalization: `"pre"` or `"post"`.
        dropout: rate on the output of every sub-layer.
        **kwargs: those of `keras.layers.Layer`.

    Attributes:
        ROLES: roles of its attention layers; the first gives blocks their names.
    """

    ROLES: tuple[str, ...]

    def __init__(
        self,
        self_attention: BaseAttention | None,
        feed_forward: FeedForward | None,
        normalization: str,
        dropout: float,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.normalization = normalization
        self.dropout_rate = dropout
        self.self_attention = self_attention
        self.feed_forward = feed_forward
        # `None` if the sub-layer is, and only then.
        self.self_residual: Any = self.residual(self_attention, "self_residual")
        self.feed_forward_residual: Any = self.residual(feed_forward, "ff_residual")

    def residual(
        self, sublayer: keras.layers.Layer | None, name: str
    ) -> Residual | None:
        """The connection around a sub-layer, absent if the sub-layer is."""
        if sublayer is None:
            return None
        normalization: str | None = self.normalization
        if normalization == "pre" and not getattr(sublayer, "reads_query", True):
            # A norm whose output is not read would never get a gradient.
            normalization = None
        dropout = 0.0 if getattr(sublayer, "drops_output", False) else self.dropout_rate
        return Residual(normalization, dropout, dtype=self.dtype_policy, name=name)

    def build(self, input_shape: Shape) -> None:
        if self.self_attention is not None:
            self.self_attention.build(input_shape, input_shape)
            self.self_residual.build(input_shape)
        if self.feed_forward is not None:
            self.feed_forward.build(input_shape)
            self.feed_forward_residual.build(input_shape)

    def attend(
        self,
        role: str,
        x: Tensor,
        value: Tensor | None = None,
        training: bool | None = None,
        return_scores: bool = False,
        **options: Any,
    ) -> tuple[Tensor, Scores]:
        """An attention sub-layer over a whole sequence.

        Args:
            role: `"self"` or `"cross"`.
            x: `[B, T, width]`.
            value: what cross-attention attends to, `[B, S, width]`.
            training: whether dropout is applied.
            return_scores: whether the weights are returned.
            **options: further arguments of the attention layer.

        Returns:
            `[B, T, width]`, and the weights by role: none if they are not requested,
            if the sub-layer is absent, or if it has no weights.
        """
        attention = getattr(self, f"{role}_attention")
        if attention is None:
            return x, {}
        residual = getattr(self, f"{role}_residual")
        y = residual.sublayer_input(x)
        value = y if value is None else value
        options["training"] = training
        if return_scores and attention.has_scores:
            y, scores = attention(y, value, return_attention_scores=True, **options)
            return residual.add(x, y, training), {role: scores}
        return residual.add(x, attention(y, value, **options), training), {}

    def apply_feed_forward(self, x: Tensor, training: bool | None = None) -> Tensor:
        """The feed-forward sub-layer, `[..., width]` to `[..., width]`."""
        if self.feed_forward is None:
            return x
        y = self.feed_forward_residual.sublayer_input(x)
        y = self.feed_forward(y, training=training)
        return self.feed_forward_residual.add(x, y, training)


class EncoderBlock(Block):
    """Self-attention and feed-forward over a source sequence."""

    ROLES = ("encoder",)

    def call(
        self,
        x: Tensor,
        source_mask: Tensor | None = None,
        training: bool | None = None,
        return_attention_scores: bool = False,
    ) -> Any:
        """The block over a whole source.

        Args:
            x: `[B, S, width]`.
            source_mask: bool `[B, S]`, false for padding.
            training: whether dropout is applied.
            return_attention_scores: whether to return the weights as well.

        Returns:
            `[B, S, width]`; with scores also the attention weights, `[B, H, S, S]`, by
            role.
        """
        x, scores = self.attend(
            "self",
            x,
            training=training,
            return_scores=return_attention_scores,
            value_mask=source_mask,
        )
        x = self.apply_feed_forward(x, training)
        return (x, scores) if return_attention_scores else x


class DecoderBlock(Block):
    """Causal self-attention, cross-attention and feed-forward.

    Args:
        self_attention: attention layer, or `None`.
        cross_attention: attention layer, or `None`.
        *args, **kwargs: the further arguments of `Block`.
    """

    ROLES = ("decoder", "cross")

    def __init__(
        self,
        self_attention: BaseAttention | None,
        cross_attention: BaseAttention | None,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        super().__init__(self_attention, *args, **kwargs)
        self.cross_attention = cross_attention
        self.cross_residual: Any = self.residual(cross_attention, "cross_residual")

    def build(self, input_shape: Shape) -> None:
        super().build(input_shape)
        if self.cross_attention is not None:
            self.cross_attention.build(input_shape, input_shape)
            self.cross_residual.build(input_shape)

    def call(
        self,
        x: Tensor,
        encoded: Tensor,
        encoded_mask: Tensor | None = None,
        training: bool | None = None,
        return_attention_scores: bool = False,
    ) -> Any:
        """The block over a whole target.

        Args:
            x: `[B, T, width]`.
            encoded: the encoded source, `[B, S, width]`.
            encoded_mask: bool `[B, S]`, false for padding.
            training: whether dropout is applied.
            return_attention_scores: whether to return the weights as well.

        Returns:
            `[B, T, width]`; with scores also the weights of both attentions by role.
        """
        options: dict[str, Any] = {
            "training": training,
            "return_scores": return_attention_scores,
        }
        x, scores = self.attend("self", x, use_causal_mask=True, **options)
        x, cross_scores = self.attend(
            "cross", x, encoded, value_mask=encoded_mask, **options
        )
        x = self.apply_feed_forward(x, training)
        return (x, scores | cross_scores) if return_attention_scores else x

    def prepare(self, encoded: Tensor, encoded_mask: Tensor) -> State:
        """The memory of the cross-attention, computed once per sentence."""
        if self.cross_attention is None:
            return {}
        return self.cross_attention.prepare(encoded, encoded_mask)

    def initial_state(
        self, batch: Size, beams: int, max_length: int, memory: NestedTensors
    ) -> State:
        """The state of both attentions before the first position."""
        state = {}
        if self.self_attention is not None:
            state["self"] = self.self_attention.initial_state(batch, beams, max_length)
        if self.cross_attention is not None:
            state["cross"] = self.cross_attention.initial_state(
                batch, beams, max_length, memory
            )
        return state

    def step(
        self,
        x: Tensor,
        position: Tensor,
        state: NestedTensors,
        memory: NestedTensors,
        return_attention_scores: bool = False,
    ) -> tuple[Tensor, State, Tensor | None]:
        """One position of `call`, for every hypothesis.

        Args:
            x: `[B, K, width]`.
            position: int32 scalar.
            state: what the previous step, or `initial_state`, returned.
            memory: what `prepare` returned.
            return_attention_scores: whether to return an alignment as well.

        Returns:
            The output `[B, K, width]`, the new state, and the alignment, float32
            `[B, K, S]`, or `None` without one.
        """
        state, alignment = dict(state), None
        if self.self_attention is not None:
            y, state["self"] = self.self_attention.step(
                self.self_residual.sublayer_input(x), position, state["self"]
            )
            x = self.self_residual.add(x, y)
        if self.cross_attention is not None:
            y, state["cross"], *scores = self.cross_attention.step(
                self.cross_residual.sublayer_input(x),
                position,
                state["cross"],
                memory,
                return_attention_scores=(
                    return_attention_scores and self.cross_attention.has_scores
                ),
            )
            x = self.cross_residual.add(x, y)
            if scores:
                alignment = self.cross_attention.alignment(scores[0])
        return self.apply_feed_forward(x), state, alignment


def apply_blocks(
    blocks: Iterable[Block],
    x: Tensor,
    scores: dict[str, Scores] | None = None,
    **options: Any,
) -> Tensor:
    """The output of blocks one after another, `[B, L, width]`.

    Args:
        blocks: encoder or decoder blocks.
        x: `[B, L, width]`.
        scores: a dict in which the attention weights of those blocks are stored whose
            names are its keys; `None` if none are requested.
        **options: further arguments of every block.
    """
    for block in blocks:
        if scores is None or block.name not in scores:
            x = block(x, **options)
        else:
            x, scores[block.name] = block(x, return_attention_scores=True, **options)
    return x
