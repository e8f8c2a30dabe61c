"""Toy trainings on JAX with several devices, which tests start in other processes.

    python -m tests.training.on_devices FOLDER JSON

The JSON lists trainings. Each has a `name`, the `devices` that it uses (absent for a
training without `several_devices`), `model_parallel`, `changes` of its settings,
`model` for a small Transformer, a `pause` after each update, the update at which a
callback is to `stop` it, its limit of `minutes`, the `fewest` rows of its batches and,
to resume another one, its `run`. The environment variable `TOGETHER` has `coordinator`,
`process` and `processes` as JSON, or null for one process. What was trained is written
to `FOLDER/name.npz`.
"""

import contextlib
import json
import os
import sys
import time
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

import keras_attnvariants as kav
from keras_attnvariants import backend
from keras_attnvariants.cli.commands import clear_errors
from keras_attnvariants.training import TimeLimit
from keras_attnvariants.training import several_devices
from tests.training import toy


def unequal(number, batch, fewest=6):
    """A batch with 8 or fewer rows, and sources of different lengths."""
    inputs, labels, weights = batch
    lengths = 2 + tf.range(8) % 5
    real = tf.sequence_mask(lengths, 6, dtype=tf.int32)
    inputs = {**inputs, "source_ids": inputs["source_ids"] * real}
    rows = 8 - tf.cast(number % (9 - fewest), tf.int32)
    return tf.nest.map_structure(lambda x: x[:rows], (inputs, labels, weights))


class Pause(keras.callbacks.Callback):
    """Waits after each update, so that the process can be killed."""

    def __init__(self, seconds, stop=None):
        super().__init__()
        self.seconds = seconds
        self.stop = stop

    def on_train_batch_end(self, batch, logs=None):
        time.sleep(self.seconds)
        if int(backend.local_value(self.model.optimizer.iterations)) == self.stop:
            self.model.stop_training = True


def transformer(seed):
    keras.utils.set_random_seed(seed)
    attention = kav.DotProductAttention(num_heads=2, dropout=0.1)
    return kav.Transformer(
        toy.VOCABULARY, 1, 16, 32, attention, attention, attention, dropout=0.2
    )


def train(
    folder,
    name,
    devices=None,
    model_parallel=1,
    changes=None,
    run=None,
    seed=1,
    model=None,
    pause=0.0,
    fewest=6,
    stop=None,
    minutes=None,
    together=None,
):
    """Runs one training; the log is that of its folder."""
    together = together or {}
    on_devices = devices or together
    options = {"model_parallel": model_parallel, **together}
    context = several_devices(devices, **options) if on_devices else None
    limits = [] if minutes is None else [TimeLimit(minutes)]

    def cut(batches, first=0):
        """Batches of a dataset, from the one with this number on."""
        return batches.enumerate(first).map(lambda *x: unequal(*x, fewest))

    with context or contextlib.nullcontext():
        model = transformer(seed) if model else toy.toy_model(seed)
        toy.run(
            folder / (run or name),
            toy.toy_config(**(changes or {})),
            model,
            bleu=False,
            callbacks=[Pause(pause, stop), *limits],
            training_data=lambda step: cut(toy.dataset_at(step), step),
            validation_data=cut(toy.validation_data()),
        )
        arrays = toy.variables(model)
    if together.get("process", 0) == 0:
        arrays = {str(index): array for index, array in enumerate(arrays)}
        np.savez(folder / f"{name}.npz", **arrays)


def main():
    # It matters only in a power cut, and a busy disk makes it slow.
    os.fsync = lambda descriptor: None
    folder, trainings = Path(sys.argv[1]), json.loads(sys.argv[2])
    together = json.loads(os.environ.get("TOGETHER", "null"))
    with clear_errors():
        for training in trainings:
            train(folder, together=together, **training)


if __name__ == "__main__":
    import typer

    try:
        main()
    except typer.Exit as end:
        sys.exit(end.exit_code)
