"""Multi-head neural n-grams (Loem et al. 2022), and their base class.

A replacement for self-attention: each head concatenates the vectors around a position
and applies a linear layer with a ReLU.
"""

import math
from typing import Any

import keras
from keras import ops

from keras_attnvariants.attention.calls import Call
from keras_attnvariants.attention.calls import Step
from keras_attnvariants.attention.calls import Widths
from keras_attnvariants.attention.calls import mask_or_ones
from keras_attnvariants.attention.calls import zero_masked
from keras_attnvariants.attention.multi_head import MultiHeadBase
from keras_attnvariants.attention.multi_head import PerHeadInitializer
from keras_attnvariants.attention.multi_head import ProjectedAttention
from keras_attnvariants.attention.multi_head import merge_heads
from keras_attnvariants.attention.multi_head import split_heads
from keras_attnvariants.attention.registry import register_attention
from keras_attnvariants.backend import section
from keras_attnvariants.utils.checks import check_choice
from keras_attnvariants.utils.checks import check_integer
from keras_attnvariants.utils.typing import Memory
from keras_attnvariants.utils.typing import Size
from keras_attnvariants.utils.typing import State
from keras_attnvariants.utils.typing import Tensor


class NgramLayer(ProjectedAttention):
    """Base class of layers that apply a function to the window around each position.

    These layers have no weights over positions and no scores. Padding and positions
    outside the sequence count as zeros; a padded position has a context of 0.

    A layer is built either for encoders, with windows on both sides, or for decoders
    (`causal`): the two have weights of different shapes. In decoding, the state holds
    the last inputs of the window, however long the output.

    Args:
        n: reach of the window to each side, in tokens, the position itself included.
        causal: whether the window ends with the position itself.
        use_bias, initializers, regularizers and constraints: as in
            `ProjectedAttention`.

    Attributes:
        before: number of positions in a window before the current one.
    """

    roles = frozenset({"encoder", "decoder"})
    has_scores = False
    is_linear = True

    def __init__(self, n: int = 5, causal: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.n = check_integer("n", n)
        self.before = self.n - 1
        self.causal = causal
        self.roles = frozenset({"decoder" if causal else "encoder"})
        reason = "it has no weights over positions"
        refused = {"key": "it has no keys", "attention_mask": reason}
        if not causal:
            refused["use_causal_mask"] = "for decoders, build it with causal=True"
        self.refused = refused

    @property
    def reach(self) -> tuple[int, int]:
        """The numbers of positions in a window before and after the current one."""
        return self.before, 0 if self.causal else self.before

    def make_layers(self, widths: Widths) -> None:
        self.input_dim = widths.value

    def attend(self, call: Call) -> tuple[Tensor, Tensor | None]:
        real = call.masks.key
        inputs = zero_masked(call.value, real)
        sentence = self.sentence_vector(call.value, real)
        context = self.contexts(self.vectors(inputs), sentence)
        return zero_masked(context, real), None

    def vectors(self, inputs: Tensor) -> Tensor:
        """The `V` vectors of each window: from `[B, L, d]` to `[B, L, V, d]`.

        By default they are the inputs in the window.
        """
        before, after = self.reach
        length = ops.shape(inputs)[1]
        padded = ops.pad(inputs, ((0, 0), (before, after), (0, 0)))
        shifts = range(before + 1 + after)
        return ops.stack([section(padded, s, length, 1) for s in shifts], axis=2)

    def last_vectors(self, window: Tensor) -> Tensor:
        """The same for the last position only: `[B, K, W, d]` to `[B, K, V, d]`."""
        return window

    def sentence_vector(self, value: Tensor, mask: Tensor | None) -> Tensor | None:
        """A vector that is an input at all positions of a sentence, or `None`."""
        return None

    def contexts(self, vectors: Tensor, sentence: Tensor | None = None) -> Tensor:
        """The context `[B, L, H, D]` from the vectors of each window."""
        raise NotImplementedError(f"{type(self).__name__} does not define `contexts`.")

    def initial_state(
        self, batch: Size, beams: int, max_length: int, memory: Memory = None
    ) -> State:
        """The last inputs, oldest first: `[B, K, slots, d]`."""
        if not self.causal:
            raise ValueError(
                f"`causal` must be True for decoding: otherwise the windows of "
                f"{type(self).__name__} contain later positions. "
                f"Received: causal={self.causal}"
            )
        shape = (batch, beams, self.before, self.input_dim)
        return {"inputs": ops.zeros(shape, self.compute_dtype)}

    def attend_step(self, step: Step) -> tuple[Tensor, Tensor | None, State]:
        query = ops.cast(step.query, self.compute_dtype)
        window = ops.concatenate([step.state["inputs"], query[:, :, None]], axis=2)
        context = self.contexts(self.last_vectors(window))
        return context, None, {"inputs": window[:, :, 1:]}


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
    layer; `g` is the elementwise maximum over the sentence. Padded positions count
    as zeros in windows and are ignored in the maximum.

    Args:
        num_heads: number of heads.
        n: reach of the window to each side, in tokens, the position itself included.
        causal: whether the window ends with the position itself, as decoders need.
        head_input: input of head `k`: `"slice"`, the `k`-th slice of the channels of
            every vector; `"full"`, all channels, so that the heads form one wide layer.
        global_context: whether `g` is used; `None` to use it unless the layer is
            `causal`.
        output_projection: whether `W` is used. Without it, the widths of the heads
            must add up to the width of the query.
        value_dim, use_bias, initializers, regularizers and constraints: as in
            `MultiHeadBase`. The matrices of all heads are initialized as one matrix.

    Raises:
        ValueError: a size does not fit, `head_input` is unknown, or a causal layer
            has a global context. When called: `key`, `attention_mask` or
            `return_attention_scores` is given, or `use_causal_mask` to a layer that is
            not `causal`, because the layer has no weights over positions.

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
                "`global_context` must not be True if `causal` is: it would reveal "
                "later positions. "
                f"Received: causal={causal}, global_context={global_context}"
            )
        self.head_input = check_choice("head_input", head_input, HEAD_INPUTS)
        self.global_context = not causal if global_context is None else global_context
        self.output_projection = output_projection

    def make_layers(self, widths: Widths) -> None:
        super().make_layers(widths)
        width = widths.query
        # Heads with the same input form one layer:
        # `[ReLU(x W_1), …] = ReLU(x [W_1 …])`.
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
                f"`output_projection` must be True unless the heads together are as "
                f"wide as the query. Received: {self.num_heads} heads of width "
                f"{self.head_dim} for {width}"
            )
        self.ngram_dense = self.heads("ngram", 1 + sum(self.reach), self.use_bias)
        if self.global_context:
            self.global_dense = self.heads("global", 1, use_bias=False)
        if self.output_projection:
            self.output_dense = self.dense_output(self.units, width)

    def heads(
        self, name: str, vectors: int, use_bias: bool
    ) -> keras.layers.EinsumDense:
        """A built linear layer over concatenated vectors, with one matrix per group."""
        initializer = PerHeadInitializer(self.kernel_initializer.clone())
        layer = keras.layers.EinsumDense(
            "blvgd,gvdo->blgo",
            output_shape=(None, self.groups, self.units // self.groups),
            bias_axes="go" if use_bias else None,
            **self.dense_options(name, initializer),
        )
        width = self.input_dim // self.groups
        layer.build((None, None, vectors, self.groups, width))
        return layer

    def sentence_vector(self, value: Tensor, mask: Tensor | None) -> Tensor | None:
        """The elementwise maximum over real positions, `[B, 1, 1, d]`."""
        if not self.global_context:
            return None
        real = mask_or_ones(mask, value)[..., None]  # [B, L, 1]
        lowest = ops.cast(-math.inf, value.dtype)
        values = ops.where(real, value, lowest)
        # An empty batch has no maximum without `initial`.
        largest = ops.max(values, axis=1, keepdims=True, initial=lowest)
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
