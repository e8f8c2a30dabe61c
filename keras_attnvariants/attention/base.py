"""The contract that every attention variant fulfils.

Axis letters: `B` batch, `K` beams, `T` target (query) length, `S` source (key)
length, `H` heads, `D` head width.

A variant is mostly its equation. It subclasses `BaseAttention` and overrides

* `attend`: the whole sequence at once, for training and encoding;
* `prepare`, `initial_state`, `step`: one position at a time, for decoding.
"""

from typing import Any

import keras
from keras import ops

from keras_attnvariants.attention.checks import check_lengths
from keras_attnvariants.attention.checks import check_optional
from keras_attnvariants.attention.checks import check_positive
from keras_attnvariants.attention.heads import merge_heads
from keras_attnvariants.attention.masks import Masks
from keras_attnvariants.attention.masks import both
from keras_attnvariants.attention.masks import zero_masked
from keras_attnvariants.backend import Dense

# The key of a state under which stands what all hypotheses of a sentence share.
SHARED = "shared"


class BaseAttention(keras.layers.Layer):
    """Base class of the attention variants: a drop-in for `MultiHeadAttention`.

    It owns the value and output projections, head splitting, mask handling,
    validation and serialization.

    Masking: Keras masks of `query`, `value` and `key` are used and the query's
    is passed on. The content of padded keys never changes a real position; a
    query that sees no key gets a context of exactly 0, as does a query that
    `query_mask` excludes.

    Args:
        num_heads: number of heads `H`.
        value_dim: width `D` of a head's values; `None` for width / `num_heads`.
        use_bias: whether the projections have biases. The papers collected
            here mostly use none, hence the default `False`.
        kernel_initializer: of the input projections.
        output_initializer: of the output projection; `None` for the same.
        bias_initializer: of the biases, if any.

    Class attributes:
        roles: where the equation makes sense: encoder, decoder, cross.
        roles_argument: what decides which of these roles an instance has, if not all.
        reads_query: whether the output depends on the content of the query, and
            not on its position alone.
        has_scores: whether there are weights over positions; a variant without
            refuses `return_attention_scores`.
        drops_output: whether the layer drops parts of its own output in training, so
            that the residual connection around it must not.
        score_blocks: how often the last axis of the scores lists the keys: more
            than once where there are phrases besides tokens.

    Raises:
        ValueError: a size is not a positive integer, or, when built,
            `num_heads` does not divide the width and `value_dim` was not given.
    """

    roles: frozenset[str] = frozenset()
    roles_argument = "roles"
    reads_query = True
    has_scores = True
    drops_output = False
    score_blocks: int = 1

    def __init__(
        self,
        num_heads: int,
        value_dim: int | None = None,
        use_bias: bool = False,
        kernel_initializer="glorot_uniform",
        output_initializer=None,
        bias_initializer="zeros",
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.num_heads = check_positive("num_heads", num_heads)
        self.value_dim = check_optional("value_dim", value_dim)
        self.use_bias = use_bias
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.output_initializer = keras.initializers.get(
            kernel_initializer if output_initializer is None else output_initializer
        )
        self.bias_initializer = keras.initializers.get(bias_initializer)

    # Building

    def build(self, query_shape, value_shape=None, key_shape=None):
        width = query_shape[-1]
        value_width = (value_shape or query_shape)[-1]
        self.head_dim = self.value_dim or self.divide_width(width, "value_dim")
        self.value_dense = self.projection(self.head_dim, "value", value_width)
        self.output_dense = self.dense(
            width, "output", self.num_heads * self.head_dim, self.output_initializer
        )

    def divide_width(self, width: int, argument: str) -> int:
        """The width of one head of `width`, where `argument` does not give one."""
        if width % self.num_heads:
            raise ValueError(
                f"`num_heads` must divide the width of the query unless `{argument}` "
                f"is given. Received: num_heads={self.num_heads}, width={width}"
            )
        return width // self.num_heads

    def projection(self, head_dim: int, name: str, input_width: int):
        """A built projection to `num_heads` heads of `head_dim` each."""
        return self.dense(
            self.num_heads * head_dim, name, input_width, self.kernel_initializer
        )

    def dense(self, units: int, name: str, input_width: int, initializer):
        """A built dense layer of this layer's dtype policy."""
        layer = Dense(
            units,
            use_bias=self.use_bias,
            kernel_initializer=clone_initializer(initializer),
            bias_initializer=clone_initializer(self.bias_initializer),
            dtype=self.dtype_policy,
            name=name,
        )
        layer.build((None, None, input_width))
        return layer

    # The whole sequence at once

    def call(
        self,
        query,
        value,
        key=None,
        query_mask=None,
        value_mask=None,
        key_mask=None,
        attention_mask=None,
        return_attention_scores=False,
        training=None,
        use_causal_mask=False,
    ):
        """Attends from `query` to `value`.

        Args:
            query: `[B, T, width]`.
            value: `[B, S, value width]`.
            key: `[B, S, key width]`; `None` for `value`. Variants without keys
                refuse any other.
            query_mask: bool `[B, T]`, real query positions.
            value_mask: bool `[B, S]`, real key positions.
            key_mask: bool `[B, S]`, combined with `value_mask`.
            attention_mask: bool `[B, T, S]`, which key each query may see.
            return_attention_scores: whether to return the weights as well;
                this never changes the output.
            training: whether dropout is applied.
            use_causal_mask: whether query `i` may only see keys `j <= i`.

        Returns:
            `[B, T, width]`; with scores also float32 weights `[B, H, T, S]`.

        Raises:
            ValueError: the variant cannot honour an argument.
        """
        self.check_scores(return_attention_scores)
        check_lengths(self, query, value)
        masks = Masks(
            query_mask, both(value_mask, key_mask), attention_mask, use_causal_mask
        )
        context, scores = self.attend(
            query, value, key, masks, return_attention_scores, training
        )
        context = zero_masked(context, query_mask)
        output = self.project_output(context, training)
        if not return_attention_scores:
            return output
        if query_mask is not None:
            scores = ops.where(
                ops.cast(query_mask, "bool")[:, None, :, None], scores, 0.0
            )
        return output, scores

    def attend(self, query, value, key, masks: Masks, return_scores: bool, training):
        """The variant's equation over whole sequences.

        Args:
            query, value, key: as in `call`; `key` may be `None`.
            masks: the masks of the call, to be honoured or refused.
            return_scores: whether the weights are wanted.
            training: whether dropout is applied.

        Returns:
            The context `[B, T, H, D]`, before the output projection, and the
            float32 weights `[B, H, T, S]` (`None` is fine if not wanted).
        """
        raise NotImplementedError(f"{type(self).__name__} does not define `attend`.")

    def project_output(self, context, training=False):
        """The output `[..., width]` from the context `[..., H, D]`."""
        return self.output_dense(merge_heads(context))

    # One position at a time

    def prepare(self, value, value_mask=None) -> dict[str, Any]:
        """What cross-attention keeps of a source: once per sentence.

        Args:
            value: `[B, S, value width]`.
            value_mask: bool `[B, S]`.

        Returns:
            The memory: a dict of tensors `[B, ...]`, never tiled over beams.
        """
        raise NotImplementedError(f"{type(self).__name__} cannot do cross-attention.")

    def initial_state(self, batch, beams: int, max_length: int, memory=None):
        """The state before the first position: a dict of `[B, K, ...]` tensors.

        What is under the key `SHARED` belongs to all hypotheses of a sentence: a
        search reorders rows of hypotheses, and leaves this as it is.

        Args:
            batch: number of sentences; an integer or a scalar tensor.
            beams: number of hypotheses per sentence.
            max_length: number of positions that will be decoded at most.
            memory: what `prepare` returned, in cross-attention; `None` in
                self-attention.

        Raises:
            ValueError: a variant that is cross-attention only has no `memory`.
        """
        return {}

    def step(self, query, position, state, memory=None, return_attention_scores=False):
        """One position of `call`, for every hypothesis.

        Args:
            query: `[B, K, width]`, the inputs at this position.
            position: int32 scalar, 0-based and below `max_length`. A tensor is not
                checked: where the state has no room for it, what is new is lost.
            state: what the previous step, or `initial_state`, returned.
            memory: what `prepare` returned, in cross-attention.
            return_attention_scores: whether to return the weights as well.

        Returns:
            The output `[B, K, width]` and the new state; with scores also
            float32 weights: `[B, K, H, S]` over the source in cross-attention,
            `[B, K, H, slots]` over the positions held in the state otherwise.

        Raises:
            ValueError: the state has no room for `position`, a Python integer.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define `step`.")

    def alignment(self, scores):
        """How much each source position counts, on average over the heads.

        Args:
            scores: `[B, K, H, S]`, as `step` returns them in cross-attention.

        Returns:
            Float32 `[B, K, S]`.
        """
        return ops.mean(scores, axis=2)

    # Keras

    def compute_mask(self, query, query_mask=None):
        return query_mask

    def compute_output_shape(self, query_shape, value_shape=None, key_shape=None):
        return query_shape

    def compute_output_spec(
        self, query, value, key=None, *args, return_attention_scores=False, **kwargs
    ):
        output = keras.KerasTensor(query.shape, dtype=self.compute_dtype)
        # Positional callers: query_mask, value_mask, key_mask, attention_mask, …
        wanted = return_attention_scores or (len(args) > 4 and args[4])
        self.check_scores(wanted)
        check_lengths(self, query, value)
        if not wanted:
            return output
        keys = value.shape[1] and value.shape[1] * self.score_blocks
        shape = (query.shape[0], self.num_heads, query.shape[1], keys)
        return output, keras.KerasTensor(shape, dtype="float32")

    def get_config(self) -> dict[str, Any]:
        serialize = keras.initializers.serialize
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "value_dim": self.value_dim,
            "use_bias": self.use_bias,
            "kernel_initializer": serialize(self.kernel_initializer),
            "output_initializer": serialize(self.output_initializer),
            "bias_initializer": serialize(self.bias_initializer),
        }

    def refuse_key(self, value, key):
        """Raises if a key other than the value was given to a keyless variant."""
        if key is not None and key is not value:
            raise ValueError(
                f"{type(self).__name__} has no keys: its weights depend on positions "
                f"only. Pass `query` and `value`. Received: key={key}"
            )

    def check_scores(self, wanted: bool):
        """Raises if weights are wanted of a variant that has none."""
        if wanted and not self.has_scores:
            raise ValueError(
                f"{type(self).__name__} has no attention weights: it does not weigh "
                f"positions. Received: return_attention_scores={wanted}"
            )


def clone_initializer(initializer):
    """A fresh copy, so that two weights never share a random stream."""
    return initializer.__class__.from_config(initializer.get_config())
