"""Weights files with matrices in 8 bits, which take a quarter of the space on disk.

In a packed file, each float matrix is an array of 8-bit integers, with an array of
scales beside it, one per row or one per column, called `<name>_scale`. Unpacking gives
an ordinary float32 file. Unlike with `model.quantize("int8")`, nothing is computed with
the integers.
"""

import io

import h5py
import numpy as np

# Attribute of a packed file, and the only format so far.
PACKED, FORMAT = "packed", 1
SCALE = "_scale"
# Minimum number of values per scale; an array with fewer is stored as it is.
MIN_VALUES_PER_SCALE = 16


def pack(weights: bytes | memoryview) -> bytes:
    """A weights file with its matrices in 8 bits."""
    packed = io.BytesIO()
    with (
        h5py.File(io.BytesIO(weights), "r+") as file,
        h5py.File(packed, "w") as smaller,
    ):
        for name, array in datasets(file).items():
            if array.dtype.kind == "f" and (found := quantized(array[()])):
                del file[name]
                file[name], file[name + SCALE] = found
        # Replaced arrays leave holes in the file, but not in a copy.
        for name in file:
            file.copy(name, smaller)
        smaller.attrs[PACKED] = FORMAT
    return packed.getvalue()


def unpack(weights: bytes) -> io.BytesIO:
    """A weights file with its matrices in float32; any other file as it is.

    Raises:
        ValueError: arrays are longer than the file, or in other files; or the file was
            packed in another way, or a scale does not fit.
        OSError: it is not an HDF5 file.
    """
    unpacked = io.BytesIO(weights)
    with h5py.File(unpacked, "r") as file:
        arrays = datasets(file).values()
        size = sum(array.nbytes for array in arrays)
        if size > len(weights):
            raise ValueError(f"arrays of {size:,} bytes in a file that is shorter")
        if any(array.external or array.is_virtual for array in arrays):
            raise ValueError("arrays must be in the file itself, not in others")
        file_format = file.attrs.get(PACKED)
    if file_format is None:
        return unpacked
    if file_format != FORMAT:
        raise ValueError(
            f"packed in format {file_format}, and only format {FORMAT} is known"
        )
    with h5py.File(unpacked, "r+") as file:
        by_name = datasets(file)
        for name in by_name:
            if name + SCALE in by_name:
                integers, scale = by_name[name], file[name + SCALE][()]
                # Allocated first, so that a scale cannot enlarge it.
                matrix = np.empty(integers.shape, "float32")
                with np.errstate(all="ignore"):
                    np.multiply(integers[()], scale, out=matrix)
                del file[name], file[name + SCALE]
                file[name] = matrix
    return unpacked


def quantized(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """8-bit integers and scales whose product approximates a matrix.

    Each slice of the first or of the last axis has a scale; the axis with the smaller
    squared error is used.

    Args:
        matrix: float, of any number of axes.

    Returns:
        Integers in the shape of the matrix, and scales that broadcast to it; `None` for
        a vector, or a matrix so narrow that there would be many scales.
    """
    found = []
    for axis in {0, matrix.ndim - 1} if matrix.ndim > 1 else ():
        others = tuple(other for other in range(matrix.ndim) if other != axis)
        scale = np.abs(matrix).max(axis=others, keepdims=True, initial=0) / 127
        scale = np.where(scale == 0, 1, scale).astype("float32")
        if scale.size * MIN_VALUES_PER_SCALE <= matrix.size:
            integers = np.rint(matrix / scale).astype("int8")
            error = np.square(matrix - integers * scale).sum()
            found.append((error, integers, scale))
    return min(found, key=lambda one: one[0])[1:] if found else None


def counts(weights: io.BytesIO) -> tuple[int, int]:
    """The number of arrays in a weights file, and of numbers in them."""
    with h5py.File(weights) as file:
        arrays = datasets(file).values()
        return len(arrays), sum(array.size for array in arrays)


def datasets(file: h5py.File) -> dict[str, h5py.Dataset]:
    """The arrays of a file by their paths, without linked ones."""
    paths: list[str] = []
    file.visit(paths.append)
    return {path: file[path] for path in paths if isinstance(file[path], h5py.Dataset)}
