"""What the layers share that concatenate neighbours instead of weighing them."""

from typing import Any

from keras import ops

from keras_attnvariants.attention.banded import slide
from keras_attnvariants.attention.base import BaseAttention
from keras_attnvariants.attention.checks import check_positive
from keras_attnvariants.attention.masks import zero_masked


class NgramLayer(BaseAttention):
    """A function of the vectors in a window around each position.

    There are no weights over positions, hence no scores. Padding counts as zeros, as
    does what lies outside the sequence; a padded position gets a context of 0.

    A layer either looks to both sides and serves as encoder attention, or is `causal`
    by construction and serves as decoder attention: the two have weights of
    different shapes. A causal one keeps the last inputs in decoding, as many as it
    looks back, and nothing that grows with length.

    Args:
        num_heads: number of heads `H`.
        n: how far the window reaches, in tokens, the position itself included.
        causal: whether the window ends with the position itself.
        value_dim, use_bias and initializers: as in `BaseAttention`.
    """

    roles = frozenset({"encoder", "decoder"})
    roles_argument = "causal"
    has_scores = False

    def __init__(self, num_heads: int, n: int = 5, causal: bool = False, **kwargs: Any):
        super().__init__(num_heads, **kwargs)
        self.n = check_positive("n", n)
        self.causal = causal
        self.roles = frozenset({"decoder" if causal else "encoder"})

    @property
    def before(self) -> int:
        """How many positions are looked at before each one."""
        return self.n - 1

    @property
    def reach(self) -> tuple[int, int]:
        """How many positions are looked at before and after each one."""
        return self.before, 0 if self.causal else self.before

    def build(self, query_shape, value_shape=None, key_shape=None):
        self.input_dim = (value_shape or query_shape)[-1]

    def attend(self, query, value, key, masks, return_scores, training):
        self.refuse_key(value, key)
        self.check_pattern(masks)
        inputs = zero_masked(value, masks.key)
        context = self.mix(self.vectors(inputs), self.summary(value, masks.key))
        return zero_masked(context, masks.key), None

    def check_pattern(self, masks):
        """Raises if keys are excluded that this layer has weights for."""
        if masks.attention is not None or (masks.causal and not self.causal):
            raise ValueError(
                f"{type(self).__name__} cannot honour `attention_mask`, nor "
                f"`use_causal_mask` unless it is built with causal=True: it has no "
                f"weights over positions. Use `value_mask` for padding. "
                f"Received: attention_mask={masks.attention}, "
                f"use_causal_mask={masks.causal}"
            )

    def vectors(self, inputs):
        """What is concatenated, per position: `[B, L, d]` to `[B, L, V, d]`."""
        raise NotImplementedError

    def vectors_at_end(self, window):
        """The same for the last position of a window `[B, K, W, d]`: `[B, K, V, d]`."""
        raise NotImplementedError

    def summary(self, value, mask):
        """What all positions of a sentence see as well; `None` for nothing."""
        return None

    def mix(self, vectors, summary=None):
        """The context `[B, L, H, D]` from what is concatenated."""
        raise NotImplementedError

    def initial_state(self, batch, beams, max_length, memory=None):
        """The last inputs, oldest first: `[B, K, slots, d]`."""
        if not self.causal:
            raise ValueError(
                f"{type(self).__name__} decodes only if `causal` is True: otherwise it "
                f"looks at positions to come. Received: causal={self.causal}"
            )
        shape = (batch, beams, self.before, self.input_dim)
        return {"inputs": ops.zeros(shape, self.compute_dtype)}

    def step(self, query, position, state, memory=None, return_attention_scores=False):
        self.check_scores(return_attention_scores)
        window, inputs = slide(state["inputs"], ops.cast(query, self.compute_dtype))
        context = self.mix(self.vectors_at_end(window))
        return self.project_output(context), {"inputs": inputs}

    def get_config(self):
        return {**super().get_config(), "n": self.n, "causal": self.causal}


def concatenate(vectors):
    """`[..., V, d]` to `[..., V * d]`."""
    *lead, count, width = ops.shape(vectors)
    return ops.reshape(vectors, (*lead, count * width))
