"""Random numbers that depend on nothing but their keys.

Generators of the backends draw for a whole batch at once, so that the numbers of a
sentence depend on its place. These are the same in every batch, on every backend and in
every graph.
"""

from typing import Any

from keras import ops

from keras_attnvariants.utils.typing import Tensor

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA


def uniform(seeds: Tensor, streams: Tensor, count: int) -> Tensor:
    """Numbers from 0 to below 1, in steps of `2 ** -24`.

    Args:
        seeds, streams: uint32 `[B]`; each pair of them has numbers of its own.
        count: how many of them.

    Returns:
        float32 `[B, count]`.
    """
    counters = ops.cast(ops.arange(count, dtype="int32"), "uint32")[None]
    bits, _ = threefry(
        (seeds[:, None], streams[:, None]), (counters, ops.zeros_like(counters))
    )
    bits = ops.bitwise_right_shift(bits, unsigned(8))
    return ops.cast(ops.cast(bits, "int32"), "float32") * 2.0**-24


def threefry(
    key: tuple[Tensor, Tensor], counter: tuple[Tensor, Tensor]
) -> tuple[Tensor, Tensor]:
    """Threefry-2x32 in 20 rounds (Salmon et al. 2011): uint32 in and out."""
    parity = ops.bitwise_xor(ops.bitwise_xor(*key), unsigned(PARITY))
    keys = (*key, parity)
    # Not `ops.add`, which takes some operands for biases.
    x, y = (number + part for number, part in zip(counter, key, strict=True))
    for block in range(5):
        for bits in ROTATIONS[block % 2]:
            x = x + y
            y = ops.bitwise_xor(rotated(y, bits), x)
        x = x + keys[(block + 1) % 3]
        y = y + keys[(block + 2) % 3] + unsigned(block + 1)
    return x, y


def rotated(x: Tensor, bits: int) -> Tensor:
    """The bits of uint32, rotated to the left."""
    return ops.bitwise_or(
        ops.bitwise_left_shift(x, unsigned(bits)),
        ops.bitwise_right_shift(x, unsigned(32 - bits)),
    )


def unsigned(number: Any) -> Tensor:
    """A number as uint32."""
    return ops.convert_to_tensor(number, dtype="uint32")
