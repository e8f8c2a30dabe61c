"""Updates from the gradients of several batches, and Adam updates as one operation.

Only one of the batches is in memory at a time. On a CPU, TensorFlow computes the parts
of a batch at the same time, each on one core. To divide each operator among the cores
gains less, because most operators of a training step are short.

Keras writes an Adam update with some twenty operations, which are traced for each
variable and read and write the moments several times.
"""

import os
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import keras
from keras import ops

from keras_attnvariants.backend.compilation import jit
from keras_attnvariants.backend.compilation import name
from keras_attnvariants.backend.compilation import on_cpu
from keras_attnvariants.backend.distribution import check_one_replica
from keras_attnvariants.backend.distribution import counted_rows
from keras_attnvariants.backend.distribution import place_values
from keras_attnvariants.utils.machine import MAX_PARTS
from keras_attnvariants.utils.machine import cores
from keras_attnvariants.utils.typing import Tensor

# Returns the divisor of the mean loss, from the labels and sample weights of a batch.
CountOfBatch = Callable[[Tensor, Tensor], Tensor]


def parallel_parts(model: keras.Model) -> int:
    """Number of parts of a batch that a model should be trained on at the same time.

    As many as TensorFlow may run operators at a time on a CPU, if each operator has one
    thread; else 1.

    Args:
        model: a compiled model.
    """
    if name() != "tensorflow" or not on_cpu() or model.jit_compile:
        return 1
    import tensorflow as tf

    # A number that was not set in Python is 0.
    settings = tf.config.threading
    of_operator = settings.get_intra_op_parallelism_threads() or int(
        os.environ.get("TF_NUM_INTRAOP_THREADS") or 0
    )
    operators = settings.get_inter_op_parallelism_threads() or int(
        os.environ.get("TF_NUM_INTEROP_THREADS") or cores()
    )
    return min(operators, MAX_PARTS) if of_operator == 1 else 1


def accumulating_train_function(
    model: keras.Model,
    batches: int,
    count: CountOfBatch,
    parts: int = 1,
) -> Callable[..., Any]:
    """A `train_function` for Keras' `fit`, which calls it for each update.

    The gradient of the update is the sum of the batches' gradients, each times the
    count of its batch, over the sum of the counts. With a loss that is a mean over real
    tokens, and their number as the count, it is the gradient of one large batch. The
    optimizer sees only this gradient, and clips and scales it like any other. A Keras
    optimizer with `gradient_accumulation_steps` takes the mean over batches instead,
    which is another gradient if the batches differ in real tokens; its schedule and its
    moving averages count batches, not updates.

    Args:
        model: a compiled model, with a built optimizer.
        batches: number of batches per update.
        count: returns a scalar for the labels and sample weights of a batch.
        parts: number of parts into which the rows of each batch are divided, on
            TensorFlow; see `parallel_parts`.

    Raises:
        ValueError: the backend is neither TensorFlow nor JAX, or a TensorFlow strategy
            distributes the model.
    """
    if name() == "tensorflow":
        return _on_tensorflow(model, batches, count, parts)
    return _on_jax(model, batches, count)


def dense(gradient: Tensor) -> Tensor:
    """A gradient in the shape of its variable.

    TensorFlow returns the gradient of an embedding as a list of rows, one for each
    occurrence of a token in the batch.
    """
    if name() != "tensorflow":
        return gradient
    import tensorflow as tf

    return tf.convert_to_tensor(gradient)


def _on_tensorflow(
    model: keras.Model, batches: int, count: CountOfBatch, parts: int
) -> Callable[..., Any]:
    import tensorflow as tf

    with model.distribute_strategy.scope():
        check_one_replica()

    def add_part(data: Any, sums: Any) -> Any:
        x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(data)
        with tf.GradientTape() as tape:
            predictions = model(x, training=True)
            loss = model.compute_loss(x, y, predictions, sample_weight, training=True)
            scaled = model.optimizer.scale_loss(loss)
        gradients = tape.gradient(scaled, model.trainable_weights)
        number = count(y, sample_weight)
        model.compute_metrics(x, y, predictions, sample_weight)
        return _added(sums, [*gradients, loss], number)

    def add_batch(data: Any, sums: Any) -> Any:
        totals, counted = sums
        batch = [*totals, ops.zeros(())], ops.zeros(())
        for part in row_parts(data, parts):
            batch = add_part(part, batch)
        (*totals, loss), number = batch
        _track(model, _mean(([loss], number))[0], data)
        return dict(model.get_metrics_result()), (totals, counted + number)

    def update(sums: Any) -> None:
        model.optimizer.apply(_mean(sums), model.trainable_weights)

    def update_by_next(iterator: Any) -> dict[str, Tensor]:
        logs, sums = add_batch(iterator.get_next(), _zeros(model.trainable_weights))
        update(sums)
        return logs

    add_batch, update = (jit(f, xla=model.jit_compile) for f in (add_batch, update))
    # Within a graph the shapes of the next batch are unknown: one trace serves all.
    if batches == 1:
        return jit(update_by_next, xla=False)
    add_next = jit(lambda it, sums: add_batch(it.get_next(), sums), xla=False)

    def train_function(iterator: Any) -> dict[str, Tensor]:
        sums = _zeros(model.trainable_weights)
        logs: dict[str, Tensor] = {}
        for _ in range(batches):
            logs, sums = add_next(iterator, sums)
        update(sums)
        return logs

    return train_function


def row_parts(data: Any, count: int) -> list[Any]:
    """A batch as `count` batches of nearly equal numbers of rows, in their order.

    Args:
        data: nested tensors with the rows as their first axis.
        count: number of parts. Some are empty if there are fewer rows.
    """
    if count == 1:
        return [data]
    rows = ops.shape(keras.tree.flatten(data)[0])[0]
    borders = [rows * part // count for part in range(count + 1)]
    return [
        keras.tree.map_structure(lambda x: x[start:end], data)  # noqa: B023
        for start, end in pairwise(borders)
    ]


def _on_jax(
    model: keras.Model, batches: int, count: CountOfBatch
) -> Callable[..., Any]:
    import jax

    gradient = jax.value_and_grad(model.compute_loss_and_updates, has_aux=True)

    def placed(state: Any) -> Any:
        groups = (
            model.trainable_variables,
            model.non_trainable_variables,
            model.optimizer.variables,
            model.metrics_variables,
        )
        return tuple(map(place_values, state, groups))

    def add_batch(state: Any, sums: Any, data: Any) -> Any:
        trainable, non_trainable, optimizer, metrics = state
        x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(data)
        (_, updates), gradients = gradient(
            trainable,
            non_trainable,
            metrics,
            x,
            y,
            sample_weight,
            training=True,
            optimizer_variables=optimizer,
        )
        loss, predictions, non_trainable, metrics = updates
        variables = model.metrics_variables
        mapping = list(zip(variables, metrics, strict=True))
        with keras.StatelessScope(state_mapping=mapping) as scope:
            _track(model, loss, data)
            logs = dict(model.compute_metrics(x, y, predictions, sample_weight))
        metrics = [scope.get_current_value(variable) for variable in variables]
        totals, counted = _added(sums, gradients, count(y, sample_weight))
        state = placed((trainable, non_trainable, optimizer, metrics))
        return logs, state, (place_values(totals, model.trainable_variables), counted)

    def update(state: Any, sums: Any) -> Any:
        trainable, non_trainable, optimizer, metrics = state
        trainable, optimizer = model.optimizer.stateless_apply(
            optimizer, _mean(sums), trainable
        )
        return placed((trainable, non_trainable, optimizer, metrics))

    if model.jit_compile:
        # The caller reads only the new state.
        add_batch = jax.jit(add_batch, donate_argnums=(0, 1))
        update = jax.jit(update, donate_argnums=0)

    def train_function(state: Any, iterator: Any) -> Any:
        sums = _zeros(state[0])
        logs: dict[str, Tensor] = {}
        for _ in range(batches):
            logs, state, sums = add_batch(state, sums, next(iterator))
        return logs, update(state, sums)

    return train_function


def _track(model: keras.Model, loss: Tensor, data: Any) -> None:
    """Counts the loss of a batch in the mean that Keras reports."""
    [tracker] = [metric for metric in model.metrics if metric.name == "loss"]
    tracker.update_state(loss, sample_weight=counted_rows(data))


def _zeros(weights: Any) -> tuple[list[Tensor], Tensor]:
    return [ops.zeros_like(weight) for weight in weights], ops.zeros((), "float32")


def _added(sums: Any, gradients: Any, count: Tensor) -> tuple[list[Tensor], Tensor]:
    """Adds the gradients and the count of a batch to the sums."""
    totals, counted = sums
    totals = [
        total
        if gradient is None
        else total + ops.cast(count, total.dtype) * dense(gradient)
        for total, gradient in zip(totals, gradients, strict=True)
    ]
    return totals, counted + ops.cast(count, "float32")


def _mean(sums: Any) -> list[Tensor]:
    """The gradient of all batches together; 0 if nothing was counted."""
    totals, counted = sums
    counted = ops.where(counted > 0, counted, 1.0)
    return [total / ops.cast(counted, total.dtype) for total in totals]


def has_adam(variable: Any) -> bool:
    """Whether `apply_adam` can update a variable.

    It can on TensorFlow, outside of strategies.

    Args:
        variable: a Keras variable or, as Keras passes to optimizers, a TensorFlow one.
    """
    if name() != "tensorflow":
        return False
    import tensorflow as tf

    return (
        isinstance(native(variable), tf.Variable) and not tf.distribute.has_strategy()
    )


def native(variable: Any) -> Any:
    """The backend's variable, from itself or from a Keras variable."""
    return variable.value if isinstance(variable, keras.Variable) else variable


def apply_adam(
    optimizer: keras.optimizers.Adam,
    variable: Any,
    moments: tuple[keras.Variable, keras.Variable],
    gradient: Tensor,
    learning_rate: Tensor,
    powers: tuple[Tensor, Tensor],
) -> None:
    """Changes a variable and its moments as `keras.optimizers.Adam` does.

    Args:
        optimizer: its settings are used.
        variable: the trained variable, as for `has_adam`.
        moments: averages of its gradients and of their squares.
        gradient: has the shape of the variable.
        learning_rate: scalar.
        powers: float32 scalars, `beta_1` and `beta_2` to the power of the update's
            number, which starts at 1.
    """
    import tensorflow as tf

    dtype = keras.backend.standardize_dtype(variable.dtype)
    first, second = (ops.cast(power, dtype) for power in powers)
    var, m, v = (native(x).handle for x in (variable, *moments))
    tf.raw_ops.ResourceApplyAdam(
        var=var,
        m=m,
        v=v,
        beta1_power=first,
        beta2_power=second,
        lr=ops.cast(learning_rate, dtype),
        beta1=tf.constant(optimizer.beta_1, dtype),
        beta2=tf.constant(optimizer.beta_2, dtype),
        epsilon=tf.constant(optimizer.epsilon, dtype),
        grad=ops.cast(gradient, dtype),
    )
