"""Division of a model that is too large for one device among several devices."""

from typing import Any

import keras
import numpy as np

# Axes of a mesh of devices: rows of a batch, and parts of a model.
ROWS, PARTS = "batch", "model"

# Paths of the matrices that are divided. Each device computes some of the hidden units,
# heads and logits: the first product divides its outputs, the second its inputs
# (Shoeybi et al. 2019, "Megatron-LM"). Everything else is small, and is copied.
DIVIDED = {
    r".*/embeddings/(source|target)/embeddings": (PARTS, None),
    r".*/embeddings/output/kernel": (None, PARTS),
    r".*/feed_forward(_\d+)?/intermediate/kernel": (None, PARTS),
    r".*/feed_forward(_\d+)?/output/kernel": (PARTS, None),
    r".*_attention/(query|key|value)/kernel": (None, PARTS),
    r".*_attention/output/kernel": (PARTS, None),
}


class DividedModel(keras.distribution.ModelParallel):
    """Divides rows of batches among groups of devices, and the model in each group.

    A matrix whose axis cannot be divided evenly is divided along its other axis, or
    copied.

    Args:
        devices: names of all devices, those of a group next to each other.
        parts: number of devices of a group.
    """

    def __init__(self, devices: list[str], parts: int) -> None:
        mesh = keras.distribution.DeviceMesh(
            (len(devices) // parts, parts), (ROWS, PARTS), np.array(devices)
        )
        layouts = keras.distribution.LayoutMap(mesh)
        layouts.update(DIVIDED)
        # Every process selects its rows of the batch itself.
        super().__init__(
            layout_map=layouts, batch_dim_name=ROWS, auto_shard_dataset=False
        )
        self._parts = parts

    def get_variable_layout(self, variable: Any) -> keras.distribution.TensorLayout:
        axes = super().get_variable_layout(variable).axes
        copied = (None,) * len(variable.shape)
        possible = (axes, axes[::-1], copied)
        chosen = next(each for each in possible if self._divides(each, variable.shape))
        return keras.distribution.TensorLayout(chosen, self.device_mesh)

    def _divides(self, axes: tuple[str | None, ...], shape: tuple[int, ...]) -> bool:
        """Whether all divided axes are multiples of the number of parts."""
        return len(axes) == len(shape) and not any(
            size % self._parts for axis, size in zip(axes, shape, strict=True) if axis
        )
