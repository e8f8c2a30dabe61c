"""Which precision trains faster on this machine."""

from collections.abc import Callable

from keras import ops

from keras_attnvariants.utils.machine import shortest_seconds

_SIZE = 512


def faster_precision() -> str:
    """`"mixed_bfloat16"` where it is faster, otherwise `"float32"`.

    Few processors multiply bfloat16 matrices in hardware, so this is measured, which
    takes less than half a second.
    """
    dtypes = "bfloat16", "float32"
    seconds = shortest_seconds({dtype: square_product(dtype) for dtype in dtypes})
    is_faster = seconds["bfloat16"] < 0.8 * seconds["float32"]
    return "mixed_bfloat16" if is_faster else "float32"


def square_product(dtype: str) -> Callable[[], float]:
    """A function that multiplies two square matrices and waits for the product."""
    matrix = ops.ones((_SIZE, _SIZE), dtype)

    def multiply() -> float:
        product = ops.matmul(matrix, matrix)
        # Reading a number waits for the product. NumPy knows no bfloat16.
        return float(ops.cast(product[0, 0], "float32"))

    return multiply
