"""The loop of a run: periods of updates by Keras' `fit`, and their validations."""

import dataclasses
from collections.abc import Callable
from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from keras_attnvariants import backend
from keras_attnvariants.backend import accumulating_train_function
from keras_attnvariants.backend import distribution
from keras_attnvariants.training.callbacks import Progress
from keras_attnvariants.training.callbacks import StepCounter
from keras_attnvariants.training.guided_alignment import check_alignments
from keras_attnvariants.training.losses import LabelSmoothedCrossEntropy
from keras_attnvariants.training.losses import Perplexity
from keras_attnvariants.training.losses import TokenCount
from keras_attnvariants.training.losses import token_weights
from keras_attnvariants.training.optimizers import MovingAverage
from keras_attnvariants.training.state import LoadedState
from keras_attnvariants.training.state import assign_arrays
from keras_attnvariants.training.training_config import TrainingConfig


@dataclasses.dataclass
class TrainingLoop:
    """Periods of updates, each with a validation, up to the end of a run.

    Args:
        model: the model, which this compiles.
        config: settings.
        training_data: gives the endless dataset that starts at a batch.
        validation_data: finite dataset, or `None`.
        metrics: further metrics of Keras.
        verbose: as for `train`.

    Attributes:
        progress: where the run stands.
        averages: callback that validates averages in place of the weights.

    Raises:
        ValueError: the model has another precision than the settings, or is not on the
            devices on which it is to be trained.
    """

    model: keras.Model
    config: TrainingConfig
    training_data: Callable[[int], Any]
    validation_data: Any
    metrics: Sequence[keras.metrics.Metric]
    verbose: int | str

    def __post_init__(self) -> None:
        check_devices(self.model)
        policy, precision = self.model.dtype_policy.name, self.config.precision
        if policy != precision:
            raise ValueError(
                "`config.precision` must be the dtype policy of the model. It is "
                f"{precision!r}. Received: a model of policy {policy!r}"
            )
        self.validation_data = divide_batches(self.validation_data)
        self.progress = Progress()
        self.averages = MovingAverage()
        # `train` shows a bar of its own unless `fit` is to show something.
        self.verbose = 0 if self.verbose == "auto" else self.verbose
        self._counter = StepCounter(self.progress, self._compile())

    @property
    def is_done(self) -> bool:
        """Whether no update is left."""
        return self.progress.step >= self.config.steps or self.progress.stopped

    def variables(self) -> dict[str, list[keras.Variable]]:
        """All variables that an update changes, by group."""
        return {
            "model": self.model.variables,
            "optimizer": self.model.optimizer.variables,
            "metrics": self.model.metrics_variables,
        }

    def start(self, state: LoadedState) -> None:
        """Sets model, optimizer and progress to a saved state."""
        vars(self.progress).update(state.progress)
        for group in ("model", "optimizer"):
            assign_arrays(self.variables()[group], state.variables[group], group)
        if self.progress.step < self.progress.period_end:
            self._counter.metrics = state.variables["metrics"]

    def run(self, callbacks: Sequence[keras.callbacks.Callback]) -> None:
        """Runs all remaining updates and validations.

        Args:
            callbacks: come after those that count updates and average weights.
        """
        callbacks = [self._counter, self.averages, *callbacks]
        progress = self.progress
        if self.is_done and progress.step < progress.period_end:
            progress.end_period()  # fewer updates are asked for than were done
        if progress.validation_pending:
            self._validate(callbacks)
        while not self.is_done:
            self._fit(callbacks)
        self.model.train_function = None  # the caller may `fit` it in another way

    def evaluate(self, callbacks: Any = None) -> dict[str, float]:
        """Validation metrics of the model as it is now."""
        if self.validation_data is None:
            return {}
        logs = self.model.evaluate(
            self.validation_data, verbose=0, callbacks=callbacks, return_dict=True
        )
        return {f"val_{name}": value for name, value in logs.items()}

    def _fit(self, callbacks: Sequence[keras.callbacks.Callback]) -> None:
        """One `fit` over all full periods that follow, or over a shorter one.

        A period is shorter after a resume in the middle of it, and at the end.
        """
        step, period = self.progress.step, self.config.validate_every
        left = self.config.steps - step
        updates = min(period - step % period, left)
        epoch = step // period
        self.model.fit(
            divide_batches(self.training_data(step * self.config.accumulate)),
            validation_data=self.validation_data,
            initial_epoch=epoch,
            epochs=epoch + (left // period if updates == period else 1),
            steps_per_epoch=updates,
            shuffle=False,  # the dataset has its own order
            callbacks=callbacks,
            verbose=self.verbose,
        )

    def _validate(self, callbacks: Sequence[keras.callbacks.Callback]) -> None:
        """The validation of a period whose updates were finished before a resume."""
        epoch = (self.progress.step - 1) // self.config.validate_every
        self.model.stop_training = False
        called = keras.callbacks.CallbackList(callbacks, model=self.model)
        called.on_train_begin()
        logs = self.progress.logs | self.evaluate(called)
        called.on_epoch_end(epoch, logs)
        called.on_train_end(logs)

    def _compile(self) -> int:
        """Compiles, and creates every variable that a saved state is loaded into.

        Returns:
            The number of classes, which is the last axis of the logits.
        """
        model, config = self.model, self.config
        pad_id = getattr(model, "pad_id", 0)
        model.compile(
            optimizer=config.optimizer(),
            loss=LabelSmoothedCrossEntropy(config.label_smoothing, pad_id),
            weighted_metrics=[
                Perplexity(pad_id=pad_id),
                TokenCount(pad_id=pad_id),
                *self.metrics,
            ],
            jit_compile=config.uses_xla,
        )
        distribution.weigh_batches(model)
        batch = next(iter(divide_batches(self.training_data(0))))
        batch = keras.tree.map_structure(lambda x: x[:1], batch)
        inputs, labels, weights = keras.utils.unpack_x_y_sample_weight(batch)
        check_alignments(config, inputs)
        logits = model(inputs, training=False)
        model.compute_metrics(inputs, labels, logits, weights)
        model.reset_metrics()
        model.optimizer.build(model.trainable_variables)
        parts = backend.parallel_parts(model)
        if config.accumulate > 1 or parts > 1:
            model.train_function = accumulating_train_function(
                model,
                config.accumulate,
                lambda labels, weights: ops.sum(token_weights(labels, pad_id, weights)),
                parts,
            )
        return int(logits.shape[-1])


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


def divide_batches(data: Any) -> Any:
    """A dataset of batches with only the rows of this process.

    Rows are added until all groups of devices have the same number. They hold padding,
    with sample weights of 0, and do not count. On one device, nothing changes.

    Args:
        data: `tf.data.Dataset` of `(inputs, labels)` or `(inputs, labels, weights)`;
            all have the rows as their first axis. `None` stays `None`.
    """
    parallel = keras.distribution.distribution()
    if parallel is None or data is None:
        return data
    import tensorflow as tf

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
            return tf.pad(tensor, pads)[number * share : (number + 1) * share]

        return tf.nest.map_structure(own, (inputs, labels, weights))

    return data.map(cut, num_parallel_calls=tf.data.AUTOTUNE)
