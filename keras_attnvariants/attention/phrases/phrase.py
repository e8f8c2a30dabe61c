"""Phrase-based attention (Nguyen and Joty 2018): queries attend to n-grams.

How an n-gram is scored (`phrases.heads`) and which heads attend to which n-grams
(`phrases.structures`) are independent choices. In all cases the n-grams of all orders
form one list of keys and values, of static length, and attention works as usual.
N-grams that do not exist are masked. With two query streams there are two lists of
queries.
"""

import functools
from typing import Any

import keras
from keras import ops

from keras_attnvariants.attention.banded import last_ngrams
from keras_attnvariants.attention.banded import ngrams_by_order
from keras_attnvariants.attention.calls import Call
from keras_attnvariants.attention.calls import Masks
from keras_attnvariants.attention.calls import Step
from keras_attnvariants.attention.calls import Widths
from keras_attnvariants.attention.calls import mask_or_ones
from keras_attnvariants.attention.calls import zero_masked
from keras_attnvariants.attention.multi_head import SoftmaxAttention
from keras_attnvariants.attention.phrases.heads import joined
from keras_attnvariants.attention.phrases.scores import PhraseScores
from keras_attnvariants.attention.phrases.scores import by_position
from keras_attnvariants.attention.phrases.scorings import SCORINGS
from keras_attnvariants.attention.phrases.structures import Heterogeneous
from keras_attnvariants.attention.phrases.structures import Homogeneous
from keras_attnvariants.attention.phrases.structures import Interleaved
from keras_attnvariants.attention.phrases.structures import Structure
from keras_attnvariants.attention.registry import WIDTHS
from keras_attnvariants.attention.registry import register_attention
from keras_attnvariants.utils.checks import check_choice
from keras_attnvariants.utils.typing import Memory
from keras_attnvariants.utils.typing import Size
from keras_attnvariants.utils.typing import State
from keras_attnvariants.utils.typing import Tensor

STRUCTURES = "`structure` must be Homogeneous(…), Heterogeneous(…) or Interleaved(…)."
UNIGRAMS_AND_BIGRAMS = Heterogeneous((1, 2))
ORDERS, LOOK_AHEAD = Heterogeneous((1, 2, 3, 4)), Interleaved(look_ahead=True)
BY_ORDER = {"structure": Heterogeneous((1, 3)), "scoring": "query_k_by_order"}


@register_attention(
    paper="Nguyen and Joty 2018",
    examples=(
        {"num_heads": 4},
        {"structure": ORDERS, "scoring": "query_k", **WIDTHS},
        {"structure": Homogeneous((1, 2, 1)), "use_bias": True, **WIDTHS},
        {"num_heads": 4, "structure": Homogeneous((2, 2)), "scoring": "query_k"},
        {"num_heads": 4, "structure": Interleaved()},
        {"structure": Interleaved(), "scoring": "query_k", **WIDTHS},
        {"num_heads": 4, "structure": LOOK_AHEAD},
        {"structure": LOOK_AHEAD, "scoring": "query_k", "use_bias": True, **WIDTHS},
        {"num_heads": 4, "use_bias": True, **BY_ORDER},
    ),
)
class PhraseAttention(PhraseScores, SoftmaxAttention):
    """Attention to phrases as well as tokens (Nguyen and Joty 2018, section 3).

    `softmax(score(Q, G)) V` over n-grams `G`. `scoring` defines the scores, and
    `structure` the n-grams; `docs/variants/phrase.md` has the equations.

    Args:
        num_heads: number of heads `H`.
        structure: which heads attend to which n-grams, and with which queries:
            `Homogeneous(heads)`, `Heterogeneous(orders)` or
            `Interleaved(look_ahead)`.
        scoring: `"conv_kv"`, keys are convolutions over the tokens of an n-gram;
            `"query_k"`, the query is a kernel that is convolved with the keys;
            `"query_k_by_order"`, the same with separate keys for each order.
        key_dim: width of a head's queries and keys (per tap of a kernel); `None`
            for width / `num_heads`.
        value_dim: width of a head's values; `None` for `key_dim`.
        dropout: dropout rate of the attention weights.
        use_bias: whether the projections have biases.
        seed: random seed of the dropout.
        initializers, regularizers and constraints: as in `ProjectedAttention`.

    Masking: a query attends to an n-gram if it may attend to all of its tokens. An
    `attention_mask` applies to both the token query and the phrase query of a position.

    The last axis of the scores lists the keys `S` once for every order of n-grams,
    and repeats this list for every query stream. `split_scores` separates these axes;
    `token_scores` converts the scores to weights of tokens.

    Raises:
        TypeError: `structure` is not a structure.
        ValueError: a size or rate is out of range, `scoring` is unknown, or the
            structure does not fit `num_heads`.

    Example:

    >>> import numpy as np
    >>> layer = PhraseAttention(num_heads=4, structure=Interleaved())
    >>> x = np.ones((2, 7, 16), "float32")
    >>> _, scores = layer(x, x, return_attention_scores=True, use_causal_mask=True)
    >>> scores.shape, layer.split_scores(scores).shape
    (TensorShape([2, 4, 7, 28]), TensorShape([2, 4, 7, 2, 2, 7]))
    """

    def __init__(
        self,
        num_heads: int,
        structure: Structure = UNIGRAMS_AND_BIGRAMS,
        scoring: str = "conv_kv",
        **kwargs: Any,
    ) -> None:
        super().__init__(num_heads, **kwargs)
        self.structure = Structure.of(structure, STRUCTURES)
        self.scoring = check_choice("scoring", scoring, SCORINGS)
        self.roles = self.structure.roles
        self.refused = self.structure.refused
        groups, streams = self.structure.groups(num_heads), self.structure.query_orders
        self.score_blocks = len(streams) * len(groups[0].orders)

    # Building

    def make_layers(self, widths: Widths) -> None:
        key_dim = self.head_width("key_dim", self.key_dim, widths.query)
        self.head_dim = self.head_width("value_dim", self.value_dim, widths.query)
        sizes = self.structure.query_orders, widths, key_dim, self.head_dim
        self.groups = [
            SCORINGS[self.scoring](self, group, *sizes)
            for group in self.structure.groups(self.num_heads)
        ]
        self.width = widths.query
        self.orders = {n for heads in self.groups for n in heads.group.orders}
        self.output_dense = self.dense_output(
            self.structure.contexts * self.num_heads * self.head_dim, self.width
        )

    def joint_projections(self) -> list[tuple[keras.layers.Dense, ...]]:
        """None: all projections of inputs belong to the groups of heads."""
        return []

    # The whole sequence at once

    def attend(self, call: Call) -> tuple[Tensor, Tensor | None]:
        length, _ = call.lengths
        memory = self.memory(call, length)
        existing = self.structure.existing_queries(call.masks, length)
        grams = ngrams_by_order(call.query, self.structure.query_orders)
        queries = [heads.project_queries(grams) for heads in self.groups]
        context, weights = self.attend_ngrams(queries, existing, memory, call.training)
        scores = by_position(weights, len(existing)) if call.return_scores else None
        return context, scores

    def memory(self, call: Call, query_length: Size) -> list[State]:
        """The keys, values and mask of each group of heads: nested `[B, ...]`."""
        masks = call.masks
        grams = keys = ngrams_by_order(zero_masked(call.value, masks.key), self.orders)
        if call.key is not None:
            keys = ngrams_by_order(zero_masked(call.key, masks.key), self.orders)
        return [heads.memory(keys, grams, masks, query_length) for heads in self.groups]

    def attend_ngrams(
        self,
        queries: list[list[Tensor]],
        existing: list[Tensor],
        memory: list[State],
        training: bool | None = False,
    ) -> tuple[Tensor, Tensor]:
        """The attention of all heads to n-grams.

        Args:
            queries: the queries of each group of heads.
            existing: which queries of each query stream exist, bool `[1|B, T]`.
            memory: returned by `memory`, for each group of heads.
            training: whether dropout is applied.

        Returns:
            Contexts `[B, T, C * H, D]` and float32 weights `[B, H, M * T, N * S]`.
        """
        drop = functools.partial(self.drop, training=training)
        found = [
            heads.attend(rows, entry, existing, drop)
            for heads, rows, entry in zip(self.groups, queries, memory, strict=True)
        ]
        contexts, weights = zip(*found, strict=True)
        context = self.structure.arrange(joined(contexts, axis=1))
        return context, joined(weights, axis=1)

    # One position at a time

    def prepare(self, value: Tensor, value_mask: Tensor | None = None) -> State:
        masks = Masks(key=mask_or_ones(value_mask, value))
        return {"groups": self.memory(Call(None, value, masks=masks), 1)}

    def initial_state(
        self, batch: Size, beams: int, max_length: int, memory: Memory = None
    ) -> State:
        """The previous inputs and, in self-attention, all keys and values."""
        state: State = {}
        reach = max(self.structure.query_orders)
        if memory is None:
            reach = max(reach, *self.orders)
            state["groups"] = [
                heads.initial_cache(batch, beams, max_length) for heads in self.groups
            ]
        if reach > 1:
            shape = (batch, beams, (reach - 1) * self.width)
            state["inputs"] = ops.zeros(shape, self.compute_dtype)
        return state

    def attend_step(self, step: Step) -> tuple[Tensor, Tensor | None, State]:
        position, state = step.position, dict(step.state)
        beams = ops.shape(step.query)[1]
        window = ops.cast(step.query, self.compute_dtype)
        if "inputs" in state:
            window = ops.concatenate([state["inputs"], window], axis=-1)
            state["inputs"] = window[..., self.width :]
        grams = last_ngrams(window, self.width)
        if step.memory is not None:
            groups = step.memory["groups"]
            queries = [heads.project_queries(grams) for heads in self.groups]
        else:
            pairs = zip(self.groups, state["groups"], strict=True)
            steps = [heads.extend(cache, grams, position) for heads, cache in pairs]
            queries, groups, state["groups"] = map(list, zip(*steps, strict=True))
        existing = [
            ops.broadcast_to(position >= order - 1, (1, beams))
            for order in self.structure.query_orders
        ]
        context, weights = self.attend_ngrams(queries, existing, groups)
        if not step.return_scores:
            return context, None, state
        scores = ops.transpose(by_position(weights, len(existing)), (0, 2, 1, 3))
        if step.memory is None:
            # Each hypothesis has one entry per position.
            scores = ops.reshape(scores, (*ops.shape(scores)[:3], -1, beams))
            scores = ops.sum(scores, axis=-1)
        return context, scores, state  # scores [B, K, H, M * N * S]
