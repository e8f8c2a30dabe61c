"""Functions of a model, compiled once for each task and shape."""

import functools
from collections.abc import Callable
from collections.abc import Hashable
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_attnvariants import backend
from keras_attnvariants.utils.garbage import no_collection
from keras_attnvariants.utils.typing import Tensor


class CompiledTasks:
    """Runs functions of a model with its current weights.

    Args:
        model: a step model; the functions may use its variables.
        xla: on TensorFlow, whether XLA compiles them; `None` to let
            `keras_attnvariants.backend.gains_from_xla` decide.

    Attributes:
        num_compilations: how often a function was compiled so far.
    """

    def __init__(self, model: Any, xla: bool | None) -> None:
        self.xla = backend.gains_from_xla(model) if xla is None else xla
        self.num_compilations = 0
        self._variables = getattr(model, "variables", [])
        self._compiled: dict[Hashable, Callable[..., Any]] = {}

    def run(
        self, task: Hashable, function: Callable[..., Any], *inputs: np.ndarray
    ) -> list[np.ndarray]:
        """The outputs of `function`, which is compiled once for each task and shape.

        Args:
            task: all that distinguishes the function from others.
            function: returns a sequence of tensors; each `None` is left out.
            inputs: of the function.
        """
        key = (task, *(array.shape for array in inputs))
        if key not in self._compiled:
            # A new partial object: TensorFlow would take several shapes of one function
            # for needless retracing, and warn.
            traced = functools.partial(self._traced, function)
            self._compiled[key] = backend.jit(traced, xla=self.xla)
        weights = [backend.local_value(variable) for variable in self._variables]
        outputs = self._compiled[key](weights, *map(ops.convert_to_tensor, inputs))
        return [
            ops.convert_to_numpy(output) for output in outputs if output is not None
        ]

    def _traced(
        self, function: Callable[..., Any], weights: list[Tensor], *inputs: Tensor
    ) -> Any:
        """Calls `function` with weights that are arguments.

        JAX would otherwise compile the current values of the weights.
        """
        self.num_compilations += 1
        pairs = list(zip(self._variables, weights, strict=True))
        with keras.StatelessScope(state_mapping=pairs), no_collection():
            return function(*inputs)
