"""Training on several devices, of one process or of many, as if there were one."""

import contextlib
import dataclasses
from collections.abc import Callable
from collections.abc import Iterator
from typing import Any

import keras

from keras_attnvariants import backend
from keras_attnvariants.backend import distribution
from keras_attnvariants.backend.layouts import DividedModel
from keras_attnvariants.training.callbacks import StoppedBySignal
from keras_attnvariants.training.loop import Training
from keras_attnvariants.training.processes import ProcessLostError
from keras_attnvariants.training.processes import check_same
from keras_attnvariants.utils.checks import check_address
from keras_attnvariants.utils.checks import check_integer
from keras_attnvariants.utils.checks import check_optional_integer
from keras_attnvariants.utils.checks import check_positive


@contextlib.contextmanager
def several_devices(
    devices: int | None = None,
    *,
    model_parallel: int = 1,
    coordinator: str | None = None,
    process: int = 0,
    processes: int = 1,
    wait: float = 300.0,
) -> Iterator[None]:
    """Context in which models are built, and trained, on several devices.

    The rows of a batch are divided among the devices, and the losses summed over the
    real tokens of all: an update is that of one device, up to rounding, with the same
    dropout. A run may be resumed on another number of devices.

    With several processes, each runs the same program. Process 0 alone writes the
    folder of the run, shows the progress, and has the callbacks of the caller and the
    translations of a validation; callbacks must not call the model. If a process ends,
    JAX ends the others, and the run can be resumed.

    A model that is too large for one device is divided among `model_parallel` of them:
    embeddings, feed-forward layers and the projections of attention, with what the
    optimizer keeps of them. Such a group has the rows that one device would have.

    Args:
        devices: how many of this process, and of each other; `None` for all.
        model_parallel: among how many devices of a process a model is divided.
        coordinator: `"host:port"` of process 0, where it listens for the others.
        process: number of this process, from 0.
        processes: how many there are, on one machine or on several.
        wait: how long to wait for all processes, in seconds.

    Raises:
        ValueError: the backend is not JAX, there are not so many devices, an argument
            is out of range, or processes were given different ones.
        OSError: process 0 cannot listen at its port.
        ProcessLostError: another process has ended. Often JAX ends this one before.

    Example:

    ```python
    with kav.training.several_devices(4):
        kav.training.train_preset(preset, corpus, "runs/hc-sa")
    ```
    """
    check_integer("model_parallel", model_parallel)
    _check(devices, coordinator, process, processes, wait)
    if coordinator is not None:
        print(_meeting(coordinator, process, processes), flush=True)
        distribution.join(coordinator, process, processes, wait)
    try:
        names = distribution.device_names(devices)
        _check_parts(model_parallel, len(names) // processes)
        check_same(devices=devices, model_parallel=model_parallel, processes=processes)
        distribution.use_same_random_values()
        with DividedModel(names, model_parallel).scope():
            yield
            distribution.wait_for_all()
    except StoppedBySignal:
        distribution.wait_for_all()  # process 0 may save for longer than JAX waits
        raise
    except Exception as error:
        if processes > 1 and distribution.is_failure_of_runtime(error):
            raise ProcessLostError(error) from error
        raise


def _check(
    devices: int | None,
    coordinator: str | None,
    process: int,
    processes: int,
    wait: float,
) -> None:
    check_optional_integer("devices", devices)
    check_integer("processes", processes)
    check_integer("process", process, minimum=0)
    check_positive("wait", wait)
    if process >= processes:
        raise ValueError(
            f"`process` must be below `processes`. Received: {process} of {processes}"
        )
    if (coordinator is None) != (processes == 1):
        raise ValueError(
            "`coordinator` and `processes` must be given together. "
            f"Received: coordinator={coordinator!r}, processes={processes}"
        )
    if coordinator is not None:
        check_address("coordinator", coordinator)
    if backend.name() != "jax":
        raise ValueError(
            "Several devices need JAX: install it, and set the environment variable "
            f"KERAS_BACKEND=jax. Received: the backend {backend.name()}"
        )


def _meeting(coordinator: str, process: int, processes: int) -> str:
    """What a process says while it waits."""
    if process:
        return f"Joining process 0, which shows the progress, at {coordinator}."
    others = ", ".join(map(str, range(1, processes)))
    return f"Waiting at {coordinator} for process {others}."


def _check_parts(model_parallel: int, devices: int) -> None:
    if devices % model_parallel:
        raise ValueError(
            "`model_parallel` must divide the number of devices of a process, "
            f"{devices}. Received: {model_parallel}"
        )


def check_devices(model: keras.Model) -> None:
    """Raises unless a model is on the devices on which it is to be trained.

    Raises:
        ValueError: a TensorFlow strategy has several replicas, or the model was built
            outside of the current distribution.
    """
    backend.check_one_replica()
    parallel = keras.distribution.distribution()
    if parallel is None:
        return
    expected = parallel.device_mesh.devices.size
    found = {len(variable.value.sharding.device_set) for variable in model.variables}
    if found - {expected}:
        raise ValueError(
            f"`model` must be built where it is trained, within `several_devices` on "
            f"{expected} devices. Received: one on {min(found)}"
        )


def on_devices(training: Training) -> Training:
    """A training with the batches of this process.

    Process 0 alone has the callbacks of the caller, and shows anything.
    """
    if keras.distribution.distribution() is None:
        return training
    changes = {
        "data": lambda step: divided(training.data(step)),
        "validation_data": divided(training.validation_data),
    }
    if distribution.process_number():
        changes |= {"callbacks": (), "verbose": 0}
    return dataclasses.replace(training, **changes)


def divided(data: Any) -> Any:
    """A dataset of batches, each cut to the rows of this process.

    Rows are added until all groups of devices have equally many. They hold padding,
    with sample weights of 0, and count nothing.

    Args:
        data: `tf.data.Dataset` of `(inputs, labels)` or `(inputs, labels, weights)`;
            all have the rows as their first axis.
    """
    parallel = keras.distribution.distribution()
    if parallel is None or data is None:
        return data
    import tensorflow as tf

    if not isinstance(data, tf.data.Dataset):
        raise TypeError(
            "On several devices, data must be a tf.data.Dataset. "
            f"Received: {type(data).__name__}"
        )
    groups, processes = parallel.num_model_replicas, distribution.process_count()
    number = distribution.process_number()

    def cut(*batch: Any) -> Any:
        inputs, labels, weights = keras.utils.unpack_x_y_sample_weight(batch)
        if weights is None:
            weights = tf.ones_like(labels, tf.float32)
        rows = tf.shape(labels)[0]
        share = -(-rows // groups) * (groups // processes)

        def own(tensor: Any) -> Any:
            added = share * processes - rows
            pads = [[0, added]] + [[0, 0]] * (tensor.shape.rank - 1)
            whole = tf.pad(tensor, pads)
            return whole[number * share : (number + 1) * share]

        return tf.nest.map_structure(own, inputs), own(labels), own(weights)

    return data.map(cut, num_parallel_calls=tf.data.AUTOTUNE)


def weigh_rows_that_count(model: keras.Model) -> Callable[[Any], Any] | None:
    """Lets the loss that `fit` reports ignore rows without a weight, as those added.

    Returns:
        What counts the other rows, from sample weights; `None` on one device.
    """
    if keras.distribution.distribution() is None:
        return None
    distribution.weigh_batches(model, distribution.rows_that_count)
    return distribution.rows_that_count
