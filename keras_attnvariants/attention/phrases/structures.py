"""The three structures of phrase attention: which heads attend to which n-grams.

A structure says nothing about how an n-gram is scored: see `phrases.scoring`.
"""

from collections.abc import Sequence
from dataclasses import asdict
from dataclasses import dataclass
from typing import Any
from typing import ClassVar

import keras
from keras import ops

from keras_attnvariants.attention.masks import Masks
from keras_attnvariants.attention.phrases.ngrams import complete
from keras_attnvariants.attention.phrases.ngrams import delay
from keras_attnvariants.attention.registry import PACKAGE
from keras_attnvariants.attention.registry import ROLES
from keras_attnvariants.utils.checks import check_integer
from keras_attnvariants.utils.typing import Size
from keras_attnvariants.utils.typing import Tensor


@dataclass(frozen=True)
class HeadGroup:
    """Heads that attend to n-grams of the same orders, with one softmax over all.

    Attributes:
        name: prefix of the names of its weights; empty for the only group.
        num_heads: number of heads.
        orders: the orders `n`, ascending.
        with_missing: whether n-grams that begin before the sentence are attended
            to, their missing tokens counting as zeros.
    """

    name: str
    num_heads: int
    orders: tuple[int, ...]
    with_missing: bool = False


@dataclass(frozen=True)
class Structure:
    """What the structures have in common; by default that of one query per position.

    Attributes:
        query_orders: orders `m` of the query streams; a stream's query is made
            of the `m` last tokens.
    """

    query_orders: ClassVar[tuple[int, ...]] = (1,)

    @property
    def roles(self) -> frozenset[str]:
        """Where the structure makes sense."""
        return frozenset(ROLES)

    @property
    def contexts(self) -> int:
        """How many contexts the output of a position is made of."""
        return 1

    def groups(self, num_heads: int) -> tuple[HeadGroup, ...]:
        """The groups of heads.

        Raises:
            ValueError: the structure does not fit so many heads.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define `groups`.")

    def check_call(self, masks: Masks) -> None:
        """Raises `ValueError` if a call cannot be honoured."""

    def existing_queries(self, masks: Masks, length: Size) -> list[Tensor]:
        """For each query stream, which of its queries exist: bool `[1|B, T]`."""
        return [ops.ones((1, length), "bool")]

    def arrange(self, contexts: Tensor) -> Tensor:
        """What the output of each position is made of.

        Args:
            contexts: `[B, M * T, H, D]`, those of one query stream after another.

        Returns:
            `[B, T, contexts * H, D]`.
        """
        return contexts

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments, in a form that JSON can hold."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "Structure":
        """The inverse of `get_config`."""
        return cls(**config)


@keras.saving.register_keras_serializable(package=PACKAGE)
@dataclass(frozen=True)
class Homogeneous(Structure):
    """Every head attends to n-grams of one order (Nguyen and Joty 2018).

    The first n-grams of a sentence, which would begin before it, are attended to
    like the others, with zeros for what is missing.

    Args:
        heads: number of heads for unigrams, bigrams, …: `(4, 4)`, or `(3, 2, 3)`.

    Raises:
        ValueError: `heads` are not numbers of heads.
    """

    heads: Sequence[int] = (4, 4)

    def __post_init__(self) -> None:
        object.__setattr__(self, "heads", tuple(self.heads))
        whole = all(type(count) is int and count >= 0 for count in self.heads)
        if not whole or not any(self.heads):
            raise ValueError(
                f"`heads` must be numbers of heads, one per order. "
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

    N-grams that would begin before the sentence do not exist.

    Args:
        orders: the orders, ascending: `(1, 2)`, …, `(1, 2, 3, 4)`, or any other.

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

    Every head attends to unigrams and bigrams, once with a query made of the
    token at a position and once with one made of it and the token before. With
    `u` and `b` for the contexts that they give, `b` being 0 where there is no token
    before, the output is `b_t W_0 + u_t W_1`; it takes the place of `W_o`. In an
    encoder the phrase that begins at `t` is at hand as well: with `look_ahead` the
    output is `b_t W_0 + u_t W_1 + b_{t+1} W_2`.

    This is the paper's convolution over the interleaved sequence of both contexts,
    of stride 2 and of width 2 or 3.

    Args:
        look_ahead: whether an output sees the token after it: `True` in an
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

    def check_call(self, masks: Masks) -> None:
        if not self.look_ahead:
            return
        masks.refuse_patterns(
            "Interleaved(look_ahead=True)",
            "an output follows the queries of two positions. In a decoder use "
            "look_ahead=False",
        )

    def existing_queries(self, masks: Masks, length: Size) -> list[Tensor]:
        # In an encoder a query mask only says which outputs are wanted: the last
        # one must not depend on whether the next is.
        real = masks.key if self.look_ahead else masks.query
        real = ops.ones((1, length), "bool") if real is None else ops.cast(real, "bool")
        return [ops.ones(ops.shape(real), "bool"), complete(real, 2)]

    def arrange(self, contexts: Tensor) -> Tensor:
        batch, length, heads, width = ops.shape(contexts)
        streams = ops.reshape(contexts, (batch, 2, length // 2, heads, width))
        token, phrase = streams[:, 0], streams[:, 1]
        parts = [phrase, token]
        if self.look_ahead:
            parts.append(delay(phrase, -1))
        return ops.concatenate(parts, axis=2)


def get_structure(identifier: Any) -> Structure:
    """A structure from itself, or from what Keras serialized it to.

    Raises:
        TypeError: it is neither.
    """
    structure = identifier
    if isinstance(identifier, dict):
        structure = keras.saving.deserialize_keras_object(identifier)
    if not isinstance(structure, Structure):
        raise TypeError(
            "`structure` must be Homogeneous(…), Heterogeneous(…) or Interleaved(…). "
            f"Received: {identifier!r}"
        )
    return structure
