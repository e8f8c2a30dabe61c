"""Recurrent cross-attention (Rosendahl, Herold, Petrick and Ney 2021).

Learned attention whose weights depend on what the same layer attended to at previous
target positions. `recurrences` defines how; this layer has the projections.
"""

from dataclasses import replace
from typing import Any

from keras import ops

from keras_attnvariants.attention import recurrences
from keras_attnvariants.attention.calls import Call
from keras_attnvariants.attention.calls import Step
from keras_attnvariants.attention.calls import Widths
from keras_attnvariants.attention.calls import check_memory
from keras_attnvariants.attention.calls import mask_or_ones
from keras_attnvariants.attention.multi_head import heads_first
from keras_attnvariants.attention.recurrences.base import Energies
from keras_attnvariants.attention.recurrences.base import RecurrentLayer
from keras_attnvariants.attention.recurrences.base import products
from keras_attnvariants.attention.registry import WIDTHS
from keras_attnvariants.attention.registry import register_attention
from keras_attnvariants.utils.typing import Memory
from keras_attnvariants.utils.typing import Size
from keras_attnvariants.utils.typing import State
from keras_attnvariants.utils.typing import Tensor

ANOTHER_SMOOTHING = recurrences.AccumulatedEnergies(
    rate=0.3, radius=1, renormalize=True, start="first"
)


@register_attention(
    paper="Rosendahl, Herold, Petrick and Ney 2021",
    examples=(
        {"num_heads": 4, "recurrence": "context"},
        {"recurrence": "context", **WIDTHS},
        {"recurrence": "weights", **WIDTHS},
        {"recurrence": "accumulated_weights", "use_bias": True, **WIDTHS},
        {"recurrence": "expanded_shared", "use_bias": True, **WIDTHS},
        {"recurrence": "expanded_full", **WIDTHS},
        {"recurrence": "expanded_head", **WIDTHS},
        {"recurrence": recurrences.ExpandedHeadKey(mask_first=True), **WIDTHS},
        {"num_heads": 4, "recurrence": "accumulated_energies"},
        {"recurrence": ANOTHER_SMOOTHING, **WIDTHS},
        {"recurrence": "subtracted_weights", **WIDTHS},
    ),
)
class RecurrentCrossAttention(RecurrentLayer):
    """Cross-attention with a recurrence over target positions (Rosendahl et al. 2021).

    The weights at target position `i` depend on the attention at position `i - 1` in
    the same layer; `docs/variants/recurrent_cross.md` has the equations. Everything but
    the recurrence is computed for all target positions at once. The recurrence is a
    scan over small tensors, and so is its gradient.

    Args:
        num_heads: number of heads `H`.
        recurrence: the name of a recurrence, for the paper's options, or an object of
            a class in `keras_attnvariants.attention.recurrences`.

            * `"context"`: queries depend on the head's previous context (Eq. 2);
            * `"weights"`, `"accumulated_weights"`: queries depend on the previous
              weight of each key, or on the sum of all its previous weights (Eq. 3
              and 4);
            * `"expanded_shared"`, `"expanded_full"`, `"expanded_head"`,
              `"expanded_head_key"`: the previous context becomes an extra key and
              value (Eq. 5 to 8). The scores are the weights over the source; together
              with the weight of the extra pair they sum to 1;
            * `"accumulated_energies"`: energies are smoothed over target and source
              positions (Eq. 9);
            * `"subtracted_weights"`: previous weights lower the energies (Eq. 10).
        key_dim, value_dim, dropout, use_bias, seed and initializers: as in
            `DotProductAttention`. Projections that the recurrence adds have no biases
            and use `kernel_initializer`.

    Raises:
        ValueError: as in `DotProductAttention`, or `recurrence` is unknown. When built:
            the recurrence does not fit the widths.
        TypeError: `recurrence` is neither a name nor a recurrence.

    Example:

    >>> import numpy as np
    >>> layer = RecurrentCrossAttention(num_heads=2, recurrence="weights")
    >>> target, source = np.ones((1, 6, 8), "float32"), np.ones((1, 3, 8), "float32")
    >>> output, scores = layer(target, source, return_attention_scores=True)
    >>> output.shape, scores.shape
    (TensorShape([1, 6, 8]), TensorShape([1, 2, 6, 3]))
    """

    roles = frozenset({"cross"})

    def __init__(
        self,
        num_heads: int,
        recurrence: str | recurrences.Recurrence = "weights",
        **kwargs: Any,
    ) -> None:
        super().__init__(num_heads, **kwargs)
        self.recurrence = recurrences.get(recurrence)
        self.refused = self.recurrence.refused

    def make_layers(self, widths: Widths) -> None:
        super().make_layers(widths)
        self.width = widths.query
        self.recurrent = self.recurrence.layers(self)

    def attend(self, call: Call) -> tuple[Tensor, Tensor | None]:
        memory = self.prepare(call.value, call.masks.key, call.key)
        mask: Tensor = call.masks._replace(key=memory["mask"]).combined(*call.lengths)
        plain = self.plain_energies(call.query, memory, mask[:, None])
        return self.recurrence.attend(self, replace(plain, training=call.training))

    def plain_energies(self, query: Tensor, memory: State, mask: Tensor) -> Energies:
        """Plain attention up to its softmax.

        Args:
            query: `[B, T, width]`.
            memory: returned by `prepare`.
            mask: bool `[B, 1, 1|T, S]`.
        """
        q = self.project_query(query)
        return Energies(q, products(q, memory["key"]), mask, memory)

    def prepare(
        self,
        value: Tensor,
        value_mask: Tensor | None = None,
        key: Tensor | None = None,
    ) -> State:
        keys = self.key_dense(value if key is None else key)
        memory = {
            "key": heads_first(keys, self.num_heads),  # [B, H, S, D]
            "value": heads_first(self.value_dense(value), self.num_heads),
            "mask": mask_or_ones(value_mask, value),
        }
        return {**memory, **self.recurrence.prepare(self, memory)}

    def initial_state(
        self, batch: Size, beams: int, max_length: int, memory: Memory = None
    ) -> State:
        check_memory(self, memory)
        return self.recurrence.initial_state(self, batch, beams, memory)

    def attend_step(self, step: Step) -> tuple[Tensor, Tensor | None, State]:
        mask = step.memory["mask"][:, None, None]
        plain = self.plain_energies(step.query, step.memory, mask)
        context, weights, state = self.recurrence.step(
            self, plain, step.position, step.state
        )
        return context, ops.swapaxes(weights, 1, 2), state
