"""Multi-head neural n-grams (Loem et al. 2022).

Self-attention without attention: each head is one rectified linear function of the
vectors around a position, which it concatenates.
"""

import math
from typing import Any

import keras
from keras import ops

from keras_attnvariants.attention.banded import part
from keras_attnvariants.attention.masks import zero_masked
from keras_attnvariants.attention.multi_head import MultiHeadBase
from keras_attnvariants.attention.multi_head import clone_initializer
from keras_attnvariants.attention.multi_head import merge_heads
from keras_attnvariants.attention.multi_head import split_heads
from keras_attnvariants.attention.ngram import NgramLayer
from keras_attnvariants.attention.registry import register_attention
from keras_attnvariants.utils.checks import check_choice
from keras_attnvariants.utils.typing import DType
from keras_attnvariants.utils.typing import Identifier
from keras_attnvariants.utils.typing import Shape
from keras_attnvariants.utils.typing import Tensor

HEAD_INPUTS = ("slice", "full")


@register_attention(
    paper="Loem et al. 2022",
    examples=(
        {"num_heads": 4},
        {"num_heads": 4, "causal": True},
        {"num_heads": 4, "n": 3, "output_projection": False},
        {"num_heads": 4, "n": 7, "causal": True, "output_projection": False},
        {"num_heads": 4, "n": 3, "head_input": "full", "use_bias": True},
        {"num_heads": 4, "n": 2, "causal": True, "head_input": "full", "value_dim": 3},
        {"num_heads": 4, "n": 9, "global_context": False, "use_bias": True},
        {"num_heads": 4, "n": 1, "causal": True, "use_bias": True},
    ),
)
class NeuralNgram(NgramLayer, MultiHeadBase):
    """Multi-head neural n-gram (Loem et al. 2022).

    `h_k = ReLU(concat(window, g) W_k)` and `z = concat_k(h_k) W` at every position
    `t`. The window holds the inputs `t - n + 1` to `t + n - 1`, or to `t` in a `causal`
    layer; `g` is the elementwise maximum over the sentence. A padded position counts
    as zeros in windows and not at all in the maximum.

    Args:
        num_heads: number of heads.
        n: how far the window reaches, in tokens, the position itself included.
        causal: whether the window ends with the position itself, as decoders need.
        head_input: `"slice"`, head `k` sees the `k`-th slice of the channels of every
            vector; `"full"`, heads see all channels, which makes them one wide layer.
        global_context: whether `g` is used; `None` for whenever the layer is not
            `causal`.
        output_projection: whether `W` is used. Without it, the widths of the heads
            must add up to the width of the query.
        value_dim, use_bias, initializers, regularizers and constraints: as in
            `MultiHeadBase`. The initializer of the heads draws their matrices as one.

    Raises:
        ValueError: a size does not fit, `head_input` is unknown, or a causal layer
            has a global context. When called: the arguments `key`,
            `attention_mask` and `return_attention_scores`, and `use_causal_mask` unless
            `causal`; nothing here has weights over positions.

    Example:

    >>> import numpy as np
    >>> layer = NeuralNgram(num_heads=4, n=3)
    >>> layer(np.ones((2, 7, 16), "float32"), np.ones((2, 7, 16), "float32")).shape
    TensorShape([2, 7, 16])
    >>> [(w.path.split("/", 1)[1], tuple(w.shape)) for w in layer.weights]
    [('ngram/kernel', (4, 5, 4, 4)), ('global/kernel', (4, 1, 4, 4)),
     ('output/kernel', (16, 16))]
    """

    def __init__(
        self,
        num_heads: int,
        n: int = 5,
        causal: bool = False,
        head_input: str = "slice",
        global_context: bool | None = None,
        output_projection: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(num_heads=num_heads, n=n, causal=causal, **kwargs)
        if causal and global_context:
            raise ValueError(
                "`global_context` would show later positions to a causal layer. "
                f"Received: causal={causal}, global_context={global_context}"
            )
        self.head_input = check_choice("head_input", head_input, HEAD_INPUTS)
        self.global_context = not causal if global_context is None else global_context
        self.output_projection = output_projection

    @classmethod
    def param_matched(
        cls, num_heads: int, n: int = 5, causal: bool = False, **kwargs: Any
    ) -> "NeuralNgram":
        """The form with as many parameters as the paper reports.

        The published sizes leave no room for `W`, nor for an encoder window of more
        than `n` vectors: this one is centred, from `t - (n - 1) / 2` on.

        Args:
            num_heads, causal: as in the constructor.
            n: number of vectors in a window; odd, unless `causal`.
            **kwargs: further arguments of the constructor.
        """
        if not causal and n % 2 == 0:
            raise ValueError(f"`n` must be odd to centre a window. Received: {n}")
        reach = n if causal else (n + 1) // 2
        return cls(num_heads, reach, causal, output_projection=False, **kwargs)

    def build(
        self,
        query_shape: Shape,
        value_shape: Shape | None = None,
        key_shape: Shape | None = None,
    ) -> None:
        super().build(query_shape, value_shape, key_shape)
        width = query_shape[-1]
        # Heads that see the same are one: `[ReLU(x W_1), …] = ReLU(x [W_1 …])`.
        self.groups = self.num_heads if self.head_input == "slice" else 1
        if self.input_dim % self.groups:
            raise ValueError(
                "`num_heads` must divide the width of the value unless `head_input` is "
                f"'full'. Received: num_heads={self.num_heads}, width={self.input_dim}"
            )
        self.head_dim = self.head_width("value_dim", self.value_dim, width)
        self.units = self.num_heads * self.head_dim
        if not self.output_projection and self.units != width:
            raise ValueError(
                f"Without `output_projection`, the heads must be as wide as the query. "
                f"Received: {self.num_heads} heads of width {self.head_dim} for {width}"
            )
        self.ngram_dense = self.heads("ngram", 1 + sum(self.reach), self.use_bias)
        if self.global_context:
            self.global_dense = self.heads("global", 1, use_bias=False)
        if self.output_projection:
            self.output_dense = self.dense_output(self.units, width)

    def heads(
        self, name: str, vectors: int, use_bias: bool
    ) -> keras.layers.EinsumDense:
        """A built linear map of concatenated vectors, one matrix per group."""
        initializer = SideBySide(clone_initializer(self.kernel_initializer))
        layer = keras.layers.EinsumDense(
            "blvgd,gvdo->blgo",
            output_shape=(None, self.groups, self.units // self.groups),
            bias_axes="go" if use_bias else None,
            **self.dense_options(name, use_bias, initializer),
        )
        width = self.input_dim // self.groups
        layer.build((None, None, vectors, self.groups, width))
        return layer

    def vectors(self, inputs: Tensor) -> Tensor:
        before, after = self.reach
        length = ops.shape(inputs)[1]
        padded = ops.pad(inputs, ((0, 0), (before, after), (0, 0)))
        shifts = range(before + 1 + after)
        return ops.stack([part(padded, (s, length)) for s in shifts], axis=2)

    def last_vectors(self, window: Tensor) -> Tensor:
        return window

    def sentence_vector(self, value: Tensor, mask: Tensor | None) -> Tensor | None:
        """The elementwise maximum over real positions, `[B, 1, 1, d]`."""
        if not self.global_context:
            return None
        if mask is None:
            return ops.max(value, axis=1, keepdims=True)[:, None]
        real = ops.cast(mask, "bool")[..., None]  # [B, L, 1]
        lowest = ops.cast(-math.inf, value.dtype)
        largest = ops.max(ops.where(real, value, lowest), axis=1, keepdims=True)
        return zero_masked(largest, ops.any(real, axis=1))[:, None]

    def contexts(self, vectors: Tensor, sentence: Tensor | None = None) -> Tensor:
        hidden = self.ngram_dense(split_heads(vectors, self.groups))
        if sentence is not None:
            hidden = hidden + self.global_dense(split_heads(sentence, self.groups))
        return ops.relu(hidden)

    def project_output(self, context: Tensor, training: bool | None = False) -> Tensor:
        if self.output_projection:
            return super().project_output(context, training)
        return merge_heads(context)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "head_input": self.head_input,
            "global_context": self.global_context,
            "output_projection": self.output_projection,
        }


class SideBySide(keras.initializers.Initializer):
    """Draws the matrices of all groups as one matrix, whose fans are the real ones.

    Keras would take a kernel `[groups, vectors, d, o]` for that of a convolution.
    """

    def __init__(self, initializer: Identifier) -> None:
        self.initializer = keras.initializers.get(initializer)

    def __call__(self, shape: tuple[int, ...], dtype: DType = None) -> Tensor:
        groups, vectors, width, units = shape
        drawn = self.initializer((vectors * width, groups * units), dtype=dtype)
        drawn = ops.reshape(drawn, (vectors, width, groups, units))
        return ops.transpose(drawn, (2, 0, 1, 3))

    def get_config(self) -> dict[str, Any]:
        return {"initializer": keras.initializers.serialize(self.initializer)}
