"""Linear attention (Katharopoulos, Vyas, Pappas and Fleuret 2020).

The weight of a key is a product of features, not the exponential of a product. Sums
over the keys can therefore be computed before the queries are known. Their size does
not depend on the length, so time and memory are linear in length.
"""

from keras import ops

from keras_attnvariants.attention.banded import causal_sums
from keras_attnvariants.attention.banded import pair_sums
from keras_attnvariants.attention.calls import Call
from keras_attnvariants.attention.calls import Step
from keras_attnvariants.attention.calls import zero_masked
from keras_attnvariants.attention.multi_head import QueryKeyValueAttention
from keras_attnvariants.attention.registry import PLAIN_EXAMPLES
from keras_attnvariants.attention.registry import register_attention
from keras_attnvariants.backend import project_jointly
from keras_attnvariants.utils.typing import Memory
from keras_attnvariants.utils.typing import Size
from keras_attnvariants.utils.typing import State
from keras_attnvariants.utils.typing import Tensor


@register_attention(
    paper="Katharopoulos, Vyas, Pappas and Fleuret 2020",
    examples=PLAIN_EXAMPLES,
)
class LinearAttention(QueryKeyValueAttention):
    """Attention with products of features as weights (Katharopoulos et al. 2020).

    `sum_j phi(q_i) . phi(k_j) v_j / sum_j phi(q_i) . phi(k_j)` with
    `phi(x) = elu(x) + 1`, over all keys or, under a causal mask, over `j <= i`
    (sections 3.2 and 3.3). Queries and keys are not scaled, as in the released code.

    Args:
        num_heads: number of heads `H`.
        key_dim: width of a head's queries and keys; `None` for width / `num_heads`.
        value_dim: width of a head's values; `None` for `key_dim`.
        use_bias, initializers, regularizers and constraints: as in
            `ProjectedAttention`.

    Time and memory are linear in length, unless the scores are requested. In decoding,
    the state holds one matrix for each head, however long the output. Sums are float32
    in every dtype. A step of self-attention returns the weight of the current position
    only, `[B, K, H, 1]`, because the state does not keep previous positions apart.

    An `attention_mask` is refused because no query is compared with a single key.

    Raises:
        ValueError: a size is out of range, or `num_heads` does not divide the width
            and `key_dim` was not given.

    Example:

    >>> import numpy as np
    >>> layer = LinearAttention(num_heads=2)
    >>> x = np.ones((1, 3, 8), "float32")
    >>> _, scores = layer(x, x, return_attention_scores=True, use_causal_mask=True)
    >>> [round(float(w), 2) for w in scores[0, 0, 2]]
    [0.33, 0.33, 0.33]
    """

    is_linear = True
    refused = {"attention_mask": "it compares no query with a single key"}

    def attend(self, call: Call) -> tuple[Tensor, Tensor | None]:
        q, k, v = self.project_inputs(call)
        q, k = features(q), zero_masked(features(k), call.masks.key)
        v = zero_masked(with_ones(v), call.masks.key)
        if call.masks.causal:
            sums = causal_sums(q, k, v)
        else:
            sums = ops.einsum("bthd,bhde->bthe", q, pair_sums(k, v))
        context = ops.cast(means(sums), self.compute_dtype)
        if not call.return_scores:
            return context, None
        weights = call.masks.applied_to(ops.einsum("bthd,bshd->bhts", q, k))
        return context, weights / or_one(ops.sum(weights, axis=-1, keepdims=True))

    def prepare(self, value: Tensor, value_mask: Tensor | None = None) -> State:
        k = zero_masked(features(self.split(self.key_dense(value))), value_mask)
        v = zero_masked(with_ones(self.split(self.value_dense(value))), value_mask)
        return {"key": k, "sums": pair_sums(k, v)}

    def initial_state(
        self, batch: Size, beams: int, max_length: int, memory: Memory = None
    ) -> State:
        shape = (batch, beams, self.num_heads, self.head_key_dim, self.head_dim + 1)
        return {"sums": ops.zeros(shape)} if memory is None else {}

    def attend_step(self, step: Step) -> tuple[Tensor, Tensor | None, State]:
        if step.memory is not None:
            q = features(self.project_query(step.query))  # [B, K, H, D]
            state, sums = step.state, step.memory["sums"][:, None]
        else:
            inputs = project_jointly(self.joint_projections()[0], step.query)
            q, k, v = (self.split(x) for x in inputs)
            q, k = features(q), features(k)
            sums = step.state["sums"] + k[..., None] * with_ones(v)[..., None, :]
            state = {"sums": sums}  # [B, K, H, D, E]
        sums = ops.matmul(q[..., None, :], sums)[..., 0, :]  # [B, K, H, E]
        context = ops.cast(means(sums), self.compute_dtype)
        if not step.return_scores:
            return context, None, state
        if step.memory is not None:
            weights = ops.einsum("bkhd,bshd->bkhs", q, step.memory["key"])
        else:
            weights = ops.sum(q * k, axis=-1, keepdims=True)
        return context, weights / or_one(sums[..., -1:]), state


def features(x: Tensor) -> Tensor:
    """The positive features `elu(x) + 1` in float32."""
    return ops.elu(ops.cast(x, "float32")) + 1.0


def with_ones(values: Tensor) -> Tensor:
    """Float32 values with a 1 appended, `[..., D + 1]`, which sums the weights."""
    values = ops.cast(values, "float32")
    return ops.concatenate([values, ops.ones_like(values[..., :1])], axis=-1)


def means(sums: Tensor) -> Tensor:
    """Means of values, from the sums of values and of weights, `[..., D + 1]`."""
    values, total = ops.split(sums, [sums.shape[-1] - 1], axis=-1)
    return values / or_one(total)


def or_one(total: Tensor) -> Tensor:
    """The sum of a query's weights, or 1 for a query that sees no key."""
    return ops.where(total > 0, total, 1.0)
