"""Python's search for garbage, which finds none while a program starts."""

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def no_collection() -> Iterator[None]:
    """Spares searches of all objects while many are made that stay.

    Imports, models and graphs are such: the searches would take a fifth of the time.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextlib.contextmanager
def no_explicit_collection() -> Iterator[None]:
    """Spares the searches that a library asks for by `gc.collect()`."""
    collect = gc.collect
    gc.collect = _collect_nothing
    try:
        yield
    finally:
        gc.collect = collect


def _collect_nothing(generation: int = 2) -> int:
    return 0


@contextlib.contextmanager
def staying() -> Iterator[None]:
    """Spares also all later searches of what is made, the last one at exit included.

    For imports and whatever else a program keeps until it ends.
    """
    with no_collection():
        yield
    gc.freeze()
