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

from keras_attnvariants.attention.masks import Masks
from keras_attnvariants.attention.masks import mask_or_ones
from keras_attnvariants.attention.masks import zero_masked
from keras_attnvariants.attention.multi_head import SoftmaxAttention
from keras_attnvariants.attention.phrases.heads import SCORINGS
from keras_attnvariants.attention.phrases.heads import Widths
from keras_attnvariants.attention.phrases.ngrams import ngrams
from keras_attnvariants.attention.phrases.scores import by_position
from keras_attnvariants.attention.phrases.scores import token_scores
from keras_attnvariants.attention.phrases.structures import Heterogeneous
from keras_attnvariants.attention.phrases.structures import Homogeneous
from keras_attnvariants.attention.phrases.structures import Interleaved
from keras_attnvariants.attention.phrases.structures import Structure
from keras_attnvariants.attention.phrases.structures import get_structure
from keras_attnvariants.attention.registry import ROLES
from keras_attnvariants.attention.registry import register_attention
from keras_attnvariants.backend import masked_softmax
from keras_attnvariants.backend import section
from keras_attnvariants.utils.checks import check_choice
from keras_attnvariants.utils.typing import Memory
from keras_attnvariants.utils.typing import Shape
from keras_attnvariants.utils.typing import Size
from keras_attnvariants.utils.typing import State
from keras_attnvariants.utils.typing import Tensor

UNIGRAMS_AND_BIGRAMS = Heterogeneous((1, 2))


@register_attention(
    paper="Nguyen and Joty 2018",
    examples=(
        {"num_heads": 4},
        {
            "num_heads": 4,
            "structure": Heterogeneous((1, 2, 3, 4)),
            "scoring": "query_k",
            "key_dim": 3,
        },
        {"num_heads": 4, "structure": Homogeneous((1, 2, 1)), "use_bias": True},
        {"num_heads": 4, "structure": Homogeneous((2, 2)), "scoring": "query_k"},
        {"num_heads": 4, "structure": Interleaved()},
        {"num_heads": 4, "structure": Interleaved(), "scoring": "query_k"},
        {"num_heads": 4, "structure": Interleaved(look_ahead=True)},
        {
            "num_heads": 4,
            "structure": Interleaved(look_ahead=True),
            "scoring": "query_k",
            "use_bias": True,
        },
        {
            "num_heads": 4,
            "structure": Heterogeneous((1, 3)),
            "scoring": "query_k_by_order",
            "use_bias": True,
        },
    ),
)
class PhraseAttention(SoftmaxAttention):
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
            `"query_k_by_order"`, the same with keys of their own for each order.
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

    roles = frozenset(ROLES)

    def __init__(
        self,
        num_heads: int,
        structure: Structure = UNIGRAMS_AND_BIGRAMS,
        scoring: str = "conv_kv",
        key_dim: int | None = None,
        value_dim: int | None = None,
        dropout: float = 0.0,
        use_bias: bool = False,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            num_heads, key_dim, value_dim, dropout, use_bias, seed, **kwargs
        )
        self.structure = get_structure(structure)
        self.scoring = check_choice("scoring", scoring, SCORINGS)
        self.roles = self.structure.roles
        groups = self.structure.groups(num_heads)
        # How many times the last axis of the scores lists the keys.
        self.score_blocks = len(self.structure.query_orders) * len(groups[0].orders)

    # Building

    def build(
        self,
        query_shape: Shape,
        value_shape: Shape | None = None,
        key_shape: Shape | None = None,
    ) -> None:
        value_shape = value_shape or query_shape
        shapes = query_shape, key_shape or value_shape, value_shape
        widths = Widths(*(shape[-1] for shape in shapes))
        key_dim = self.head_width("key_dim", self.key_dim, widths.query)
        self.head_dim = self.head_width("value_dim", self.value_dim, widths.query)
        self.groups = [
            SCORINGS[self.scoring](
                group,
                self.structure.query_orders,
                widths,
                key_dim,
                self.head_dim,
                self.dense,
                dtype=self.dtype_policy,
            )
            for group in self.structure.groups(self.num_heads)
        ]
        self.width = widths.query
        self.query_reach = max(self.structure.query_orders)
        self.reach = max(max(heads.group.orders) for heads in self.groups)
        self.output_dense = self.dense_output(
            self.structure.contexts * self.num_heads * self.head_dim, self.width
        )

    # The whole sequence at once

    def attend(
        self,
        query: Tensor,
        value: Tensor,
        key: Tensor | None,
        masks: Masks,
        return_scores: bool,
        training: bool | None,
    ) -> tuple[Tensor, Tensor | None]:
        self.structure.check_call(masks)
        length = ops.shape(query)[1]
        memory = self.memory(value, key, masks, length)
        exist = self.structure.existing_queries(masks, length)
        grams = ngrams(query, self.query_reach)
        context, weights = self.attend_ngrams(grams, exist, memory, training)
        return context, by_position(weights, len(exist)) if return_scores else None

    def memory(
        self, value: Tensor, key: Tensor | None, masks: Masks, query_length: Size
    ) -> list[State]:
        """The keys, values and mask of each group of heads: nested `[B, ...]`."""
        grams = keys = ngrams(zero_masked(value, masks.key), self.reach)
        if key is not None:
            keys = ngrams(zero_masked(key, masks.key), self.reach)
        return [heads.memory(keys, grams, masks, query_length) for heads in self.groups]

    def attend_ngrams(
        self,
        grams: Tensor,
        exist: list[Tensor],
        memory: list[State],
        training: bool | None = False,
    ) -> tuple[Tensor, Tensor]:
        """Attention of all query streams to the n-grams of a memory.

        Args:
            grams: n-grams of the query, `[B, T, … * width]`.
            exist: for each query stream, which of its queries exist: bool `[1|B, T]`.
            memory: what `memory` returns, for each group of heads.
            training: whether dropout is applied.

        Returns:
            Contexts `[B, T, C * H, D]` and float32 weights `[B, H, M * T, N * S]`.
        """
        contexts, weights = [], []
        for heads, entry in zip(self.groups, memory, strict=True):
            energies = heads.energies(heads.queries(grams), entry["keys"])
            mask = entry["mask"]
            if len(exist) > 1:
                rows = [ops.logical_and(mask, stream[:, :, None]) for stream in exist]
                mask = ops.concatenate(rows, axis=1)  # [1|B, M * T, N * S]
            weights.append(masked_softmax(energies, mask[:, None]))
            kept = self.drop(weights[-1], training)
            contexts.append(ops.swapaxes(averaged(kept, entry["values"]), 1, 2))
        context = self.structure.arrange(ops.concatenate(contexts, axis=2))
        return context, ops.concatenate(weights, axis=1)

    # One position at a time

    def prepare(self, value: Tensor, value_mask: Tensor | None = None) -> State:
        masks = Masks(key=mask_or_ones(value_mask, value))
        return {"groups": self.memory(value, None, masks, 1)}

    def initial_state(
        self, batch: Size, beams: int, max_length: int, memory: Memory = None
    ) -> State:
        """The previous inputs and, in self-attention, all keys and values."""
        state: State = {}
        reach = self.query_reach
        if memory is None:
            reach = max(reach, self.reach)
            state["groups"] = [
                heads.initial_cache(batch, beams, max_length, self.compute_dtype)
                for heads in self.groups
            ]
        if reach > 1:
            shape = (batch, beams, (reach - 1) * self.width)
            state["inputs"] = ops.zeros(shape, self.compute_dtype)
        return state

    def attend_step(
        self,
        query: Tensor,
        position: Size,
        state: State,
        memory: Memory,
        return_scores: bool,
    ) -> tuple[Tensor, Tensor | None, State]:
        beams = ops.shape(query)[1]
        grams, state = self.last_ngrams(query, state)
        if memory is not None:
            groups = memory["groups"]
        else:
            caches = [
                heads.extend(cache, grams, position)
                for heads, cache in zip(self.groups, state["groups"], strict=True)
            ]
            state["groups"] = caches
            groups = [
                heads.cached_memory(cache, position, self.compute_dtype)
                for heads, cache in zip(self.groups, caches, strict=True)
            ]
        exist = [
            ops.broadcast_to(position >= order - 1, (1, beams))
            for order in self.structure.query_orders
        ]
        context, weights = self.attend_ngrams(grams, exist, groups)
        if not return_scores:
            return context, None, state
        scores = ops.transpose(by_position(weights, len(exist)), (0, 2, 1, 3))
        if memory is None:
            # The entries of all hypotheses, of which each has one per position.
            scores = ops.reshape(scores, (*ops.shape(scores)[:3], -1, beams))
            scores = ops.sum(scores, axis=-1)
        return context, scores, state  # scores [B, K, H, M * N * S]

    def last_ngrams(self, query: Tensor, state: State) -> tuple[Tensor, State]:
        """The n-grams `[B, K, … * width]` that end here, and the state after them."""
        grams, state = ops.cast(query, self.compute_dtype), dict(state)
        if "inputs" in state:
            grams = ops.concatenate([state["inputs"], grams], axis=-1)
            state["inputs"] = grams[..., self.width :]
        return grams, state

    # Reading the scores

    def compute_scores_shape(self, query_shape: Shape, value_shape: Shape) -> Shape:
        keys = value_shape[1] and value_shape[1] * self.score_blocks
        return (query_shape[0], self.num_heads, query_shape[1], keys)

    def split_scores(self, scores: Tensor) -> Tensor:
        """Scores by query stream and order of n-grams.

        Args:
            scores: `[..., M * N * S]`, as `call` and `step` return them.

        Returns:
            `[..., M, N, S]`: `M` query streams (tokens, phrases), `N` orders. The
            position of an n-gram is that of its last token. For example,
            `[..., 0, 1, :]` holds the weights of token queries on phrases. For
            `Homogeneous`, whose heads have one order each, `M = N = 1`.
        """
        *lead, size = ops.shape(scores)
        streams = len(self.structure.query_orders)
        orders = self.score_blocks // streams
        return ops.reshape(scores, (*lead, streams, orders, size // self.score_blocks))

    def token_scores(self, scores: Tensor) -> Tensor:
        """The weight of each token; weights of n-grams are split evenly among tokens.

        Args:
            scores: `[B, H, T, M * N * S]`, as `call` returns them.

        Returns:
            `[B, H, T, S]`, averaged over query streams. Rows sum to 1, or to 0 if the
            query attends to nothing.
        """
        groups = self.structure.groups(self.num_heads)
        return token_scores(self.split_scores(scores), groups)

    def alignment(self, scores: Tensor) -> Tensor:
        tokens = self.token_scores(ops.transpose(scores, (0, 2, 1, 3)))
        return ops.mean(tokens, axis=1)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "structure": keras.saving.serialize_keras_object(self.structure),
            "scoring": self.scoring,
        }


def averaged(weights: Tensor, values: list[Tensor]) -> Tensor:
    """Contexts `[B, H, T, D]`, from weights `[B, H, T, …]` of one value after another.

    Args:
        weights: in the dtype of the values.
        values: `[B, H, S, D]` each, whose lengths `S` add up to that of the weights.
    """
    if len(values) == 1:
        return ops.matmul(weights, values[0])
    contexts, first = [], 0
    for value in values:
        length = ops.shape(value)[2]
        contexts.append(ops.matmul(section(weights, first, length, axis=3), value))
        first = first + length
    return functools.reduce(ops.add, contexts)
