"""Selection of representative cases for the fast tests."""

from collections.abc import Collection
from collections.abc import Iterable
from typing import Any

import pytest


def mostly_slow(cases: Iterable[Any], fast: Collection[Any]) -> list[Any]:
    """Cases as pytest parameters, all but the `fast` ones marked as slow."""
    cases = list(cases)
    assert set(fast) <= set(cases), "a case that stands for others must be one of them"
    return [
        case if case in fast else pytest.param(*as_tuple(case), marks=pytest.mark.slow)
        for case in cases
    ]


def as_tuple(case: Any) -> tuple[Any, ...]:
    """The values of a case of one parameter or of several."""
    return case if isinstance(case, tuple) else (case,)
