"""Long arrays in parts, so that what is computed from them stays small."""

from __future__ import annotations

from collections.abc import Iterator

# Entries of a part: what is made of one stays in the cache of a processor.
BLOCK = 1 << 18


def blocks(count: int) -> Iterator[slice]:
    """Slices of an array of so many entries, one after another."""
    for start in range(0, count, BLOCK):
        yield slice(start, min(start + BLOCK, count))
