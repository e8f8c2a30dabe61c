"""Checks of arguments: each raises an error in one line, or returns the value."""

import difflib
import math
import numbers
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import TYPE_CHECKING
from typing import Any
from typing import TypeVar

if TYPE_CHECKING:
    import numpy as np

T = TypeVar("T")

# Studies of very wide beams use a thousand hypotheses; memory grows with the width.
LARGEST_BEAM = 1000


def check_integer(name: str, value: Any, minimum: int = 1) -> int:
    """`value` if it is an integer of at least `minimum`.

    Raises:
        ValueError: it is not; a bool is not an integer.
    """
    is_integer = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if is_integer and value >= minimum:
        return int(value)
    what = "a positive integer" if minimum == 1 else f"an integer >= {minimum}"
    raise ValueError(f"`{name}` must be {what}. Received: {value!r}")


def check_optional_integer(name: str, value: Any, minimum: int = 1) -> int | None:
    """`value` if it is `None`, or an integer as in `check_integer`."""
    return None if value is None else check_integer(name, value, minimum)


def check_positive(name: str, value: Any) -> float:
    """`value` if it is a finite number above 0.

    Raises:
        ValueError: it is not.
    """
    return _number(name, value, lambda x: 0 < x < math.inf, "a positive number")


def check_rate(name: str, value: Any) -> float:
    """`value` if it is a number from 0 to below 1, such as a dropout rate.

    Raises:
        ValueError: it is not.
    """
    return _number(name, value, lambda x: 0 <= x < 1, "at least 0 and below 1")


def check_share(name: str, value: Any) -> float:
    """`value` if it is a number from 0 to 1.

    Raises:
        ValueError: it is not.
    """
    return float(_number(name, value, lambda x: 0 <= x <= 1, "from 0 to 1"))


def check_finite(name: str, value: Any) -> float:
    """`value` if it is a finite number.

    Raises:
        ValueError: it is not.
    """
    return _number(name, value, math.isfinite, "a finite number")


def _number(
    name: str, value: Any, is_right: Callable[[float], bool], what: str
) -> float:
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if is_number and is_right(value):
        return value
    raise ValueError(f"`{name}` must be {what}. Received: {value!r}")


def check_seed(name: str, value: Any) -> int:
    """`value` if it is an integer from 0 to `2**31 - 1`.

    Raises:
        ValueError: it is not.
    """
    if check_integer(name, value, minimum=0) < 2**31:
        return int(value)
    raise ValueError(f"`{name}` must be below 2^31. Received: {value}")


def check_table(name: str, value: Any) -> Mapping[str, Any]:
    """`value` if it is a table, such as one of a TOML file.

    Raises:
        ValueError: it is not.
    """
    if isinstance(value, Mapping):
        return value
    raise ValueError(f"`{name}` must be a table. Received: {value!r}")


def check_choice(name: str, value: Any, choices: Collection[Any]) -> Any:
    """`value` if it is one of `choices`.

    Raises:
        ValueError: it is not; the message lists the choices.
    """
    if value in choices:
        return value
    listed = ", ".join(repr(choice) for choice in choices)
    raise ValueError(f"`{name}` must be one of {listed}. Received: {value!r}")


def check_known(where: str, name: Any, known: Collection[str]) -> None:
    """Raises unless a name is known.

    Args:
        where: the owner of the known names, with which the message begins.
        name: the name to look for.
        known: all names.

    Raises:
        ValueError: there is no such name; the message lists the nearest, or all.
    """
    if name not in known:
        hint = did_you_mean(name, known)
        raise ValueError(f"{where} has no {name!r}. {hint} Received: {name!r}")


def did_you_mean(name: Any, known: Collection[str]) -> str:
    """The known names that are nearest to an unknown one; all if none is near."""
    if near := difflib.get_close_matches(str(name), known):
        return f"Did you mean {' or '.join(map(repr, near))}?"
    return f"Known: {', '.join(map(repr, known))}."


def check_address(name: str, value: str) -> tuple[str, int]:
    """Host and port of `value` if it is `host:port`.

    Raises:
        ValueError: it is not.
    """
    host, _, port = value.rpartition(":")
    if host and port.isdecimal() and 0 < int(port) < 2**16:
        return host, int(port)
    raise ValueError(f"`{name}` must be host:port. Received: {value!r}")


def listed(name: str, texts: Iterable[T], what: str = "strings") -> list[T]:
    """Texts, or their paths, as a list.

    Raises:
        TypeError: they are one string.
    """
    if isinstance(texts, str):
        raise TypeError(f"`{name}` must be a list of {what}. Received: {texts!r}")
    return list(texts)


def seeds_of_texts(seed: int | Sequence[int], count: int) -> "np.ndarray":
    """One seed for each of `count` texts, int32, drawn from a single one if need be.

    Raises:
        ValueError: a list has another length.
    """
    # Imported here: commands check their options before they need arrays.
    import numpy as np

    if isinstance(seed, int):
        return np.random.default_rng(seed).integers(2**31, size=count, dtype=np.int32)
    return np.asarray(one_for_each("seed", seed, count), dtype=np.int32)


def one_for_each(name: str, values: Sequence[T], count: int) -> Sequence[T]:
    """`values` if there is one for each of `count` texts.

    Raises:
        ValueError: there is not.
    """
    if len(values) == count:
        return values
    raise ValueError(
        f"`{name}` must be one, or one for each text ({count}). Received: {len(values)}"
    )
