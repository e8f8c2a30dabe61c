"""Computation on several devices, and in several processes, on the JAX backend."""

import contextlib
import functools
import json
import math
import socket
from collections.abc import Callable
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_attnvariants.backend.compilation import name
from keras_attnvariants.backend.private import delay_end_of_jax_service
from keras_attnvariants.utils.typing import Size
from keras_attnvariants.utils.typing import Tensor

# Seconds without a sign of life after which JAX ends the processes of a program.
HEARTBEAT = 20
# Seconds that a process waits at its end for the others to end as well.
SHUTDOWN = 10
# Seconds that process 0 waits after that.
SIGN_OFF = 0.5


def check_one_replica() -> None:
    """Raises where a TensorFlow strategy computes on several devices.

    Keras adds the mean losses of replicas with equal weights, and averages their
    gradients. Replicas differ in real tokens, so loss and update would be wrong.

    Raises:
        ValueError: there are several replicas; the message names the way that works.
    """
    if name() != "tensorflow":
        return
    import tensorflow as tf

    replicas = tf.distribute.get_strategy().num_replicas_in_sync
    if replicas > 1:
        raise ValueError(
            "A TensorFlow strategy averages the mean losses of its replicas, which "
            "differ in real tokens, so its updates are not those of one device: train "
            "under `keras_attnvariants.training.several_devices` with the JAX backend "
            f"(KERAS_BACKEND=jax). Received: {replicas} replicas"
        )


def join(coordinator: str, process: int, processes: int, wait: float) -> None:
    """Makes this process one of several that run one JAX program.

    JAX aborts all of them if one does not join or has ended.

    Args:
        coordinator: `"host:port"` at which process 0 listens.
        process: number of this process, from 0.
        processes: number of processes.
        wait: seconds to wait for all processes.

    Raises:
        ValueError: JAX has computed something already.
        OSError: process 0 cannot listen at the port.
    """
    import jax

    if process == 0:
        _check_port(coordinator)
    config: Any = jax.config
    # `train` handles SIGTERM itself.
    config.update("jax_enable_preemption_service", False)
    try:
        jax.distributed.initialize(
            coordinator,
            processes,
            process,
            cluster_detection_method="deactivate",
            initialization_timeout=math.ceil(wait),
            heartbeat_timeout_seconds=HEARTBEAT,
            shutdown_timeout_seconds=SHUTDOWN,
        )
    except RuntimeError as error:
        raise ValueError(
            f"Processes must be joined before JAX computes anything. Received: {error}"
        ) from error
    delay_end_of_jax_service(SIGN_OFF)


def _check_port(coordinator: str) -> None:
    """Raises `OSError` if a port is taken, because JAX would crash."""
    try:
        socket.create_server(("", int(coordinator.rpartition(":")[2]))).close()
    except OSError as error:
        raise OSError(
            f"process 0 cannot listen at {coordinator} ({error.strerror}): choose "
            "another port"
        ) from error


def process_number() -> int:
    """The number of this process in the current distribution, from 0."""
    if keras.distribution.distribution() is None:
        return 0
    import jax

    return int(jax.process_index())


def process_count() -> int:
    """The number of processes in the current distribution."""
    if keras.distribution.distribution() is None:
        return 1
    import jax

    return int(jax.process_count())


def in_first_process(function: Callable[[], Any]) -> Any:
    """Calls a function in process 0, and returns its JSON value in all processes."""
    if process_count() == 1:
        return function()
    return gathered(function() if process_number() == 0 else None)[0]


def gathered(value: Any) -> list[Any]:
    """The JSON values that all processes pass to this function, in their order."""
    data = np.frombuffer(json.dumps(value).encode(), np.uint8)
    [longest] = largest([data.size])
    # JSON may end with spaces.
    texts = np.pad(data, (0, longest - data.size), constant_values=ord(" "))
    return [json.loads(text.tobytes()) for text in _of_all(texts)]


def largest(values: Sequence[int]) -> list[int]:
    """The elementwise maximum of the integers that all processes pass."""
    return [int(value) for value in _of_all(np.array(values, np.int32)).max(axis=0)]


def wait_for_all() -> None:
    """Returns when all processes have called it."""
    from jax.experimental import multihost_utils

    multihost_utils.sync_global_devices("keras_attnvariants")


def _of_all(array: Any) -> np.ndarray:
    """The arrays of one shape that all processes pass, stacked along a new axis."""
    from jax.experimental import multihost_utils

    return np.asarray(multihost_utils.process_allgather(array))


def is_failure_of_runtime(error: BaseException) -> bool:
    """Whether an error means that processes could not compute together.

    For example, one of them may have ended.
    """
    import jax

    return isinstance(error, jax.errors.JaxRuntimeError) or "Gloo" in str(error)


def device_names(each: int | None) -> list[str]:
    """Keras' names of the first devices of every process.

    Args:
        each: number of devices of each process; `None` for all.

    Raises:
        ValueError: a process has fewer, or their numbers differ between processes.
    """
    import jax

    owned: list[list[str]] = [[] for _ in range(jax.process_count())]
    for device in jax.devices():
        owned[device.process_index].append(f"{device.platform}:{device.id}")
    fewest, most = min(map(len, owned)), max(map(len, owned))
    if fewest != most:
        raise ValueError(
            "All processes must see the same number of devices: hide the others, for "
            f"example with CUDA_VISIBLE_DEVICES. Received: {fewest} to {most}"
        )
    if each is not None and each > fewest:
        kind = owned[0][0].partition(":")[0]
        raise ValueError(
            f"`devices` must be at most {fewest}, the number of {kind} devices of each "
            f"process; XLA_FLAGS=--xla_force_host_platform_device_count={each} divides "
            f"a CPU. Received: {each}"
        )
    return [device for names in owned for device in names[:each]]


def from_first_process(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The arrays that process 0 has, bit by bit, in all processes.

    Args:
        arrays: the arrays of process 0; elsewhere any of the same shapes and dtypes.
    """
    from jax.experimental import multihost_utils

    flat = [np.frombuffer(array.tobytes(), np.uint8) for array in arrays]
    shared = multihost_utils.broadcast_one_to_all(flat)
    return [
        np.asarray(data, np.uint8).view(array.dtype).reshape(array.shape)
        for data, array in zip(shared, arrays, strict=True)
    ]


def local_value(variable: keras.Variable) -> Tensor:
    """The value of a variable on one device, where many have copies or parts of it.

    Computations with it need no other process.
    """
    value = variable.value
    if name() != "jax" or not hasattr(value, "addressable_data"):
        return value
    if value.is_fully_replicated:
        return value.addressable_data(0)
    whole = np.empty(value.shape, value.dtype)
    for part in value.addressable_shards:
        whole[part.index] = part.data
    return ops.convert_to_tensor(whole)


def local_values(model: keras.Model) -> contextlib.AbstractContextManager[Any]:
    """A scope in which the variables of a model have their local values."""
    if keras.distribution.distribution() is None:
        return contextlib.nullcontext()
    return keras.StatelessScope([(v, local_value(v)) for v in model.variables])


def weigh_batches(model: keras.Model) -> None:
    """Weighs the loss of a batch in `fit` and `evaluate` by the rows that count.

    Keras weighs it by all rows, including the padding rows that several devices need.
    Nothing changes on one device.

    Args:
        model: a compiled model.
    """
    if keras.distribution.distribution() is None:
        return
    [tracker] = [metric for metric in model.metrics if metric.name == "loss"]
    update_state = type(tracker).update_state

    def counted(step: Callable[..., Any], state: Any, data: Any) -> Any:
        rows = counted_rows(data)
        tracker.update_state = lambda loss, sample_weight=None: update_state(
            tracker, loss, sample_weight=rows
        )
        try:
            return step(model, state, data)
        finally:
            del tracker.update_state

    model.train_step = functools.partial(counted, type(model).train_step)
    model.test_step = functools.partial(counted, type(model).test_step)


def place_values(values: Sequence[Tensor], variables: Sequence[Any]) -> list[Tensor]:
    """Places the values of variables on the devices of the variables."""
    distribution = keras.distribution.distribution()
    if distribution is None:
        return list(values)
    return [
        keras.distribution.distribute_tensor(
            value, distribution.get_variable_layout(variable)
        )
        for value, variable in zip(values, variables, strict=True)
    ]


def counted_rows(data: Any) -> Size | Tensor:
    """Number of rows of a batch that count for its loss.

    Args:
        data: inputs, labels and sample weights `[B, ...]`, as from a dataset. On
            several devices, rows whose weights are all 0 do not count.
    """
    x, _, sample_weight = keras.utils.unpack_x_y_sample_weight(data)
    if keras.distribution.distribution() is None:
        return ops.shape(keras.tree.flatten(x)[0])[0]
    of_rows = ops.reshape(sample_weight, (ops.shape(sample_weight)[0], -1))
    return ops.sum(ops.cast(ops.any(of_rows != 0, axis=-1), "float32"))
