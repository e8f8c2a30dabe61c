"""Which precision trains faster on this machine."""

import math
import time

from keras import ops


def faster_precision() -> str:
    """`"mixed_bfloat16"` where it is faster, otherwise `"float32"`.

    Few processors multiply bfloat16 matrices in hardware, so this is measured, which
    takes less than half a second.
    """
    seconds = product_seconds("bfloat16", "float32")
    is_faster = seconds["bfloat16"] < 0.8 * seconds["float32"]
    return "mixed_bfloat16" if is_faster else "float32"


def product_seconds(
    *dtypes: str, size: int = 512, rounds: int = 30
) -> dict[str, float]:
    """The shortest time of a product of two square matrices, by dtype.

    The dtypes take turns, many times, so that other work on the machine does not
    slow down only one of them.
    """
    matrices = {dtype: ops.ones((size, size), dtype) for dtype in dtypes}
    seconds = dict.fromkeys(dtypes, math.inf)
    for _ in range(rounds):
        for dtype, matrix in matrices.items():
            start = time.perf_counter()
            product = ops.matmul(matrix, matrix)
            # Reading a number waits for the product. NumPy knows no bfloat16.
            float(ops.cast(product[0, 0], "float32"))
            seconds[dtype] = min(seconds[dtype], time.perf_counter() - start)
    return seconds
