"""Learned multi-head attention, the baseline of all papers."""

import dataclasses

import keras
from keras import ops

from keras_attnvariants.attention.cache import KeyValueCache
from keras_attnvariants.attention.calls import Call
from keras_attnvariants.attention.calls import Step
from keras_attnvariants.attention.calls import Widths
from keras_attnvariants.attention.calls import mask_or_ones
from keras_attnvariants.attention.calls import zero_masked
from keras_attnvariants.attention.multi_head import SoftmaxAttention
from keras_attnvariants.attention.multi_head import heads_first
from keras_attnvariants.attention.registry import PLAIN_EXAMPLES
from keras_attnvariants.attention.registry import register_attention
from keras_attnvariants.backend import fused_attention
from keras_attnvariants.backend import has_fused_attention
from keras_attnvariants.backend import masked_softmax
from keras_attnvariants.backend import project_jointly
from keras_attnvariants.backend import swap_rows
from keras_attnvariants.utils.typing import Memory
from keras_attnvariants.utils.typing import Size
from keras_attnvariants.utils.typing import State
from keras_attnvariants.utils.typing import Tensor


@register_attention(paper="Vaswani et al. 2017", examples=PLAIN_EXAMPLES)
class DotProductAttention(SoftmaxAttention):
    """Scaled dot-product attention (Vaswani et al. 2017, Eq. 1).

    `softmax(Q K^T / sqrt(key_dim)) V` per head, with learned projections. To add a term
    to the energies `Q K^T / sqrt(key_dim)`, subclass this layer and override `bias`. To
    change them in another way, or to change the keys that a query attends to, override
    `energies`.

    Args:
        num_heads: number of heads `H`.
        key_dim: width of a head's queries and keys; `None` for
            width / `num_heads`, so that a single head is as wide as the model.
        value_dim: width of a head's values; `None` for `key_dim`.
        dropout: dropout rate of the attention weights.
        use_bias: whether the four projections have biases. By default they do not,
            as in most of the papers and unlike in Keras.
        seed: random seed of the dropout.
        flash_attention: whether a flash attention kernel of a GPU or TPU must be used
            (`True`) or must not be used (`False`). By default, JAX uses one if it
            exists for the shapes, if there are enough keys for it to be faster, and if
            no weights are dropped; other calls are not affected.
        kernel_initializer: initializer of the query, key and value projections.
        output_initializer: initializer of the output projection; `None` to use
            `kernel_initializer`.
        bias_initializer: initializer of the biases, if any.
        kernel_regularizer, bias_regularizer, kernel_constraint, bias_constraint:
            regularizers and constraints of all projections, as in Keras.

    Raises:
        ValueError: a size or rate is out of range, `num_heads` does not divide the
            width and `key_dim` was not given, or `flash_attention` is True together
            with dropout.

    Example:

    >>> import numpy as np
    >>> layer = DotProductAttention(num_heads=4)
    >>> x = np.ones((2, 7, 16), "float32")
    >>> output, scores = layer(x, x, return_attention_scores=True)
    >>> output.shape, scores.shape
    (TensorShape([2, 7, 16]), TensorShape([2, 4, 7, 7]))
    """

    # How decoding stores keys and values of previous positions.
    cache_type: type[KeyValueCache] = KeyValueCache

    def make_layers(self, widths: Widths) -> None:
        super().make_layers(widths)
        self.scale = self.head_key_dim**-0.5
        self.cache = self.cache_type(
            self.num_heads, self.head_key_dim, self.head_dim, self.compute_dtype
        )

    def energies(
        self,
        products: Tensor,
        query_positions: Tensor,
        key_positions: Tensor,
        mask: Tensor | None,
    ) -> tuple[Tensor, Tensor | None]:
        """The inputs of the softmax and its mask; by default the given ones.

        The forward pass and the decoding step both call this method.

        Args:
            products: `[B, H, T, S]`, products of scaled queries and keys.
            query_positions: int32 `[T]`, positions of the queries in their sequence;
                `[1]` in a decoding step, where the axis `T` holds the beams.
            key_positions: int32 `[S]`, positions of the keys in their sequence.
            mask: bool, broadcasts to `[B, H, T, S]`; or `None` for all keys.

        Returns:
            Energies `[B, H, T, S]` and a mask of the same form as `mask`.
        """
        bias = self.bias(query_positions, key_positions)
        if bias is None:
            return products, mask
        return ops.cast(products, "float32") + bias, mask

    def bias(self, query_positions: Tensor, key_positions: Tensor) -> Tensor | None:
        """A term added to the energies, float32 `[H, T, S]`; none by default."""
        return None

    # Whole sequences at once

    def attend(self, call: Call) -> tuple[Tensor, Tensor | None]:
        inputs = self.project_inputs(call)
        mask = call.masks.combined(*call.lengths)
        if not self.is_fused(call.training):
            return self.attend_heads(*inputs, mask, call.training)
        context = self.attend_fused(inputs, call, mask)
        # Asking for weights does not change the output.
        weights = self.attend_heads(*inputs, mask)[1] if call.return_scores else None
        return context, weights

    @classmethod
    def has_fused_form(cls) -> bool:
        names = ("attend", "attend_heads", "energies", "average")
        base = DotProductAttention
        return all(getattr(cls, name) is getattr(base, name) for name in names)

    def is_fused(self, training: bool | None) -> bool:
        """Whether a call is computed by the fused operation."""
        if training and self.dropout_layer.rate:
            return False
        if not self.has_fused_form() or self.head_key_dim != self.head_dim:
            return False
        return self.flash_attention is True or has_fused_attention()

    def attend_fused(
        self, inputs: tuple[Tensor, Tensor, Tensor], call: Call, mask: Tensor | None
    ) -> Tensor:
        """The context `[B, T, H, D]` by the fused operation.

        Args:
            inputs: scaled queries, keys and values by head.
            call: the call, for its masks.
            mask: all masks together; a query that sees no key has a context of 0.
        """
        flash = self.flash_attention
        if flash is None:
            flash = keras.config.is_flash_attention_enabled()
        # The kernel leaves out later keys faster than a mask can hide them.
        pattern = call.masks._replace(causal=False).combined(*call.lengths)
        bias = self.bias(*map(positions, call.lengths))
        context = fused_attention(inputs, pattern, call.masks.causal, bias, flash)
        return context if mask is None else zero_masked(context, ops.any(mask, axis=-1))

    def project_query(self, query: Tensor) -> Tensor:
        """Scaled queries `[..., H, D]` for inputs `[..., width]`."""
        return self.split(self.query_dense(query) * self.scale)

    def attend_heads(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        mask: Tensor | None,
        training: bool | None = False,
        first: int = 0,
    ) -> tuple[Tensor, Tensor]:
        """Context and weights from scaled queries, keys and values by head.

        Args:
            q: `[B, T, H, D]`.
            k, v: `[B, S, H, D]`.
            mask: bool `[1|B, 1|T, S]`, or `None`.
            training: whether dropout is applied.
            first: position of the first key, relative to the first query.
        """
        products = ops.einsum("bthd,bshd->bhts", q, k)
        query_positions = positions(ops.shape(q)[1])
        key_positions = positions(ops.shape(k)[1]) + first
        mask = None if mask is None else mask[:, None]
        energies, mask = self.energies(products, query_positions, key_positions, mask)
        return self.average(energies, v, mask, training)

    def average(
        self,
        energies: Tensor,
        values: Tensor,
        mask: Tensor | None,
        training: bool | None = False,
    ) -> tuple[Tensor, Tensor]:
        """Means of values `[B, S, H, D]` and their weights, the softmax of energies."""
        weights = masked_softmax(energies, mask)
        kept = self.drop(weights, training)
        return ops.einsum("bhts,bshd->bthd", kept, values), weights

    # One position at a time

    def round_as(self, dtype: str) -> None:
        # A step stores keys and values in this dtype, but sums nothing in it.
        self.cache = dataclasses.replace(self.cache, dtype=dtype)

    def prepare(self, value: Tensor, value_mask: Tensor | None = None) -> State:
        if "cross" not in self.roles:
            return super().prepare(value, value_mask)

        def by_head(x: Tensor) -> Tensor:
            x = ops.cast(zero_masked(x, value_mask), self.cache.dtype)
            return heads_first(x, self.num_heads)

        return {
            "key": by_head(self.key_dense(value) * self.scale),
            "value": by_head(self.value_dense(value)),
            "mask": mask_or_ones(value_mask, value),
        }

    def initial_state(
        self, batch: Size, beams: int, max_length: int, memory: Memory = None
    ) -> State:
        if memory is not None:
            return {}
        return self.cache.initial(batch, beams, max_length)

    def attend_step(self, step: Step) -> tuple[Tensor, Tensor | None, State]:
        memory, state, return_scores = step.memory, step.state, step.return_scores
        dtype = self.cache.dtype
        [layers] = self.joint_projections() if memory is None else [[self.query_dense]]
        projected = [ops.cast(x, dtype) for x in project_jointly(layers, step.query)]
        q, *own = [swap_rows(self.split(x)) for x in projected]  # [B, H, K, D]
        if memory is not None:
            # The beams of a sentence are the queries of one attention call.
            visible = memory["mask"][:, None, None]
            key, value = memory["key"], memory["value"]
            key_positions = positions(ops.shape(key)[2])
        else:
            q, (key, value) = q * self.scale, own
            state = self.cache.write(state, key, value, step.position)
            key, value, visible, key_positions = self.cache.read(state, step.position)
        products = ops.einsum("bhkd,bhsd->bhks", q, key)
        energies, mask = self.energies(products, step.positions, key_positions, visible)
        weights = masked_softmax(energies, mask)
        context = ops.matmul(ops.cast(weights, dtype), value)  # [B, H, K, D]
        context = ops.cast(swap_rows(context), self.compute_dtype)
        if not return_scores:
            return context, None, state
        if memory is None:
            weights = self.cache.by_slot(state, weights)
        return context, ops.transpose(weights, (0, 2, 1, 3)), state


def positions(length: Size) -> Tensor:
    """The positions of a sequence, int32 `[length]`."""
    return ops.arange(length, dtype="int32")
