"""Encoder and decoder blocks: attention and feed-forward around residuals.

Any sub-layer can be absent, together with its residual, dropout and normalization.
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
    """Self-attention, cross-attention and feed-forward, of which any can be absent.

    Args:
        self_attention: attention layer, or `None`.
        feed_forward: `FeedForward` layer, or `None`.
        normalization: `"pre"` or `"post"`.
        dropout: rate on the output of every sub-layer.
        cross_attention: attention layer of a decoder block, or `None`.
        **kwargs: those of `keras.layers.Layer`.

    Attributes:
        ROLES: roles of its attention layers; blocks are named after the first one.
        is_causal: whether no position sees later ones.
    """

    ROLES: tuple[str, ...]
    is_causal: bool

    def __init__(
        self,
        self_attention: BaseAttention | None,
        feed_forward: FeedForward | None,
        normalization: str,
        dropout: float,
        cross_attention: BaseAttention | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.normalization = normalization
        self.dropout_rate = dropout
        self.self_attention = self_attention
        self.feed_forward = feed_forward
        # `None` if and only if the sub-layer is `None`.
        self.self_residual: Any = self.residual(self_attention, "self_residual")
        self.feed_forward_residual: Any = self.residual(feed_forward, "ff_residual")
        self.cross_attention = cross_attention
        self.cross_residual: Any = self.residual(cross_attention, "cross_residual")

    def residual(
        self, sublayer: keras.layers.Layer | None, name: str
    ) -> Residual | None:
        """The residual connection of a sub-layer; `None` for `None`."""
        if sublayer is None:
            return None
        normalization: str | None = self.normalization
        if normalization == "pre" and not getattr(sublayer, "reads_query", True):
            # A norm whose output is not read would never get a gradient.
            normalization = None
        dropout = 0.0 if getattr(sublayer, "drops_output", False) else self.dropout_rate
        return Residual(normalization, dropout, dtype=self.dtype_policy, name=name)

    def build(self, input_shape: Shape) -> None:
        for sublayer, residual in (
            (self.self_attention, self.self_residual),
            (self.feed_forward, self.feed_forward_residual),
            (self.cross_attention, self.cross_residual),
        ):
            if sublayer is not None:
                sublayer.build(input_shape)
                residual.build(input_shape)

    def attentions(self) -> list[tuple[str, Any, Residual]]:
        """The attention layers in the order in which the block applies them.

        Each is a tuple of `"self"` or `"cross"`, the layer and its residual.
        """
        layers = (
            ("self", self.self_attention, self.self_residual),
            ("cross", self.cross_attention, self.cross_residual),
        )
        return [each for each in layers if each[1] is not None]

    def call(
        self,
        x: Tensor,
        encoded: Tensor | None = None,
        source_mask: Tensor | None = None,
        training: bool | None = None,
        return_attention_scores: bool = False,
    ) -> Any:
        """The block over a whole sequence.

        Args:
            x: `[B, L, width]`, the source in an encoder, else the target.
            encoded: the encoded source, `[B, S, width]`, in a decoder.
            source_mask: bool `[B, S]`, false for padding.
            training: whether dropout is applied.
            return_attention_scores: whether to return the weights as well.

        Returns:
            `[B, L, width]`; with scores also the attention weights by role, `"self"`
            and `"cross"`; a sub-layer that is absent or has no weights has no entry.
        """
        scores: Scores = {}
        for role, attention, residual in self.attentions():
            y = residual.sublayer_input(x)
            inputs = y, encoded if role == "cross" else y
            options: dict[str, Any] = {"value_mask": source_mask, "training": training}
            if role == "self" and self.is_causal:
                options |= {"value_mask": None, "use_causal_mask": True}
            if return_attention_scores and attention.has_scores:
                options["return_attention_scores"] = True
                y, scores[role] = attention(*inputs, **options)
            else:
                y = attention(*inputs, **options)
            x = residual.add(x, y, training)
        x = self.apply_feed_forward(x, training)
        return (x, scores) if return_attention_scores else x

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
    is_causal = False


class DecoderBlock(Block):
    """Causal self-attention, cross-attention and feed-forward."""

    ROLES = ("decoder", "cross")
    is_causal = True

    def prepare(self, encoded: Tensor, encoded_mask: Tensor) -> State:
        """The memory of the cross-attention, computed once per sentence."""
        if self.cross_attention is None:
            return {}
        return self.cross_attention.prepare(encoded, encoded_mask)

    def initial_state(
        self, batch: Size, beams: int, max_length: int, memory: NestedTensors
    ) -> State:
        """The states of both attentions before the first position, by role."""
        memories = {"self": None, "cross": memory}
        return {
            role: layer.initial_state(batch, beams, max_length, memories[role])
            for role, layer, _ in self.attentions()
        }

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
            state: returned by the previous step or `initial_state`.
            memory: returned by `prepare`.
            return_attention_scores: whether to return an alignment as well.

        Returns:
            The output `[B, K, width]`, the new state, and the alignment, float32
            `[B, K, S]`, or `None` without one.
        """
        state, alignment = dict(state), None
        for role, attention, residual in self.attentions():
            is_cross = role == "cross"
            y, state[role], *scores = attention.step(
                residual.sublayer_input(x),
                position,
                state[role],
                memory if is_cross else None,
                is_cross and return_attention_scores and attention.has_scores,
            )
            x = residual.add(x, y)
            if scores:
                alignment = attention.alignment(scores[0])
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
        scores: a dict whose keys are the names of blocks. The attention weights of
            these blocks become its values. `None` if none are requested.
        **options: further arguments of every block.
    """
    for block in blocks:
        if scores is None or block.name not in scores:
            x = block(x, **options)
        else:
            x, scores[block.name] = block(x, return_attention_scores=True, **options)
    return x
