"""The three structures of phrase attention: which heads attend to which n-grams.

A structure does not define how an n-gram is scored; see `phrases.scorings`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import keras
from keras import ops

from keras_attnvariants.attention.banded import complete
from keras_attnvariants.attention.banded import delay
from keras_attnvariants.attention.calls import Masks
from keras_attnvariants.attention.registry import PACKAGE
from keras_attnvariants.attention.registry import ROLES
from keras_attnvariants.attention.registry import Options
from keras_attnvariants.utils.checks import check_integer
from keras_attnvariants.utils.typing import Size
from keras_attnvariants.utils.typing import Tensor


@dataclass(frozen=True)
class HeadGroup:
    """Heads that attend to n-grams of the same orders, with one softmax over all.

    Attributes:
        name: prefix of the names of its weights; empty if there is only one group.
        num_heads: number of heads.
        orders: the orders `n`, ascending.
        with_missing: whether the heads attend to n-grams that begin before the
            sentence, whose missing tokens count as zeros.
    """

    name: str
    num_heads: int
    orders: tuple[int, ...]
    with_missing: bool = False


@dataclass(frozen=True)
class Structure(Options):
    """Base class of the structures; by default there is one query per position.

    Attributes:
        query_orders: orders `m` of the query streams; the queries of a stream are
            made from the last `m` tokens.
    """

    query_orders: ClassVar[tuple[int, ...]] = (1,)

    @property
    def roles(self) -> frozenset[str]:
        """The roles in which the structure can be used."""
        return frozenset(ROLES)

    @property
    def contexts(self) -> int:
        """The number of contexts that form the output at a position."""
        return 1

    def groups(self, num_heads: int) -> tuple[HeadGroup, ...]:
        """The groups of heads.

        Raises:
            ValueError: the structure does not fit this number of heads.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define `groups`.")

    @property
    def refused(self) -> dict[str, str]:
        """The arguments of a call that cannot be honoured, with reasons."""
        return {}

    def existing_queries(self, masks: Masks, length: Size) -> list[Tensor]:
        """Masks of the existing queries, bool `[1|B, T]` for each query stream."""
        return [ops.ones((1, length), "bool")]

    def arrange(self, contexts: Tensor) -> Tensor:
        """Arranges the contexts that form the output at each position.

        Args:
            contexts: `[B, H, M * T, D]`, the contexts of all query streams in turn.

        Returns:
            `[B, T, contexts * H, D]`.
        """
        return ops.swapaxes(contexts, 1, 2)


@keras.saving.register_keras_serializable(package=PACKAGE)
@dataclass(frozen=True)
class Homogeneous(Structure):
    """Every head attends to n-grams of one order (Nguyen and Joty 2018).

    N-grams that begin before the sentence are included, with zeros for the missing
    tokens.

    Args:
        heads: number of heads for unigrams, bigrams, …: `(4, 4)`, or `(3, 2, 3)`.

    Raises:
        ValueError: `heads` are not integers of at least 0, or all are 0.
    """

    heads: Sequence[int] = (4, 4)

    def __post_init__(self) -> None:
        object.__setattr__(self, "heads", tuple(self.heads))
        whole = all(type(count) is int and count >= 0 for count in self.heads)
        if not whole or not any(self.heads):
            raise ValueError(
                f"`heads` must be numbers of heads, one for each order, and not all 0. "
                f"Received: {self.heads}"
            )

    def groups(self, num_heads: int) -> tuple[HeadGroup, ...]:
        if sum(self.heads) != num_heads:
            raise ValueError(
                f"`heads` of Homogeneous must add up to num_heads={num_heads}. "
                f"Received: {self.heads}"
            )
        return tuple(
            HeadGroup(f"order_{order}", count, (order,), with_missing=True)
            for order, count in enumerate(self.heads, start=1)
            if count
        )


@keras.saving.register_keras_serializable(package=PACKAGE)
@dataclass(frozen=True)
class Heterogeneous(Structure):
    """Every head attends to n-grams of all orders at once (Nguyen and Joty 2018).

    N-grams that would begin before the sentence are masked.

    Args:
        orders: the orders, ascending, such as `(1, 2)` or `(1, 2, 3, 4)`.

    Raises:
        ValueError: `orders` are not ascending positive integers.
    """

    orders: Sequence[int] = (1, 2)

    def __post_init__(self) -> None:
        object.__setattr__(self, "orders", tuple(self.orders))
        for order in self.orders:
            check_integer("orders", order)
        if not self.orders or list(self.orders) != sorted(set(self.orders)):
            raise ValueError(f"`orders` must be ascending. Received: {self.orders}")

    def groups(self, num_heads: int) -> tuple[HeadGroup, ...]:
        return (HeadGroup("", num_heads, tuple(self.orders)),)


@keras.saving.register_keras_serializable(package=PACKAGE)
@dataclass(frozen=True)
class Interleaved(Structure):
    """Tokens and phrases attend to tokens and phrases (Nguyen and Joty 2018).

    Every head attends to unigrams and bigrams with two queries: one made from the
    token at a position, the other from this token and the previous one. Their contexts
    are `u` and `b`; at the first token, `b` is 0. The output is `b_t W_0 + u_t W_1`,
    which replaces the projection with `W_o`. An encoder can also use the phrase that
    begins at `t`: with `look_ahead`, the output is `b_t W_0 + u_t W_1 + b_{t+1} W_2`.

    This is the paper's convolution over the interleaved sequence of both contexts,
    with stride 2 and width 2 or 3.

    Args:
        look_ahead: whether an output depends on the next token: `True` in an
            encoder, `False` in a decoder and in cross-attention.
    """

    look_ahead: bool = False

    query_orders: ClassVar[tuple[int, ...]] = (1, 2)

    @property
    def roles(self) -> frozenset[str]:
        return frozenset({"encoder"} if self.look_ahead else {"decoder", "cross"})

    @property
    def contexts(self) -> int:
        return 3 if self.look_ahead else 2

    def groups(self, num_heads: int) -> tuple[HeadGroup, ...]:
        return (HeadGroup("", num_heads, (1, 2)),)

    @property
    def refused(self) -> dict[str, str]:
        if not self.look_ahead:
            return {}
        reason = "with look_ahead, an output depends on the queries of two positions"
        causal = f"{reason}; in a decoder use look_ahead=False"
        return {"attention_mask": reason, "use_causal_mask": causal}

    def existing_queries(self, masks: Masks, length: Size) -> list[Tensor]:
        # In an encoder, the query mask only selects outputs: an output must not depend
        # on whether the next one is selected.
        real = masks.key if self.look_ahead else masks.query
        real = ops.ones((1, length), "bool") if real is None else ops.cast(real, "bool")
        return [ops.ones(ops.shape(real), "bool"), complete(real, 2)]

    def arrange(self, contexts: Tensor) -> Tensor:
        token, phrase = ops.split(contexts, 2, axis=2)
        parts = [phrase, token]
        if self.look_ahead:
            parts.append(delay(phrase, -1, axis=2))
        return ops.swapaxes(ops.concatenate(parts, axis=1), 1, 2)
