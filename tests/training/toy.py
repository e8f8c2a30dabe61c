"""A model, data and a run small enough to be trained many times in a test."""

import functools
import json
import os
import signal

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from keras_attnvariants import Tokenizer
from keras_attnvariants.training import NoamSchedule
from keras_attnvariants.training import TrainingConfig
from keras_attnvariants.training import ValidationScore
from keras_attnvariants.training import train
from keras_attnvariants.training.state import to_arrays

VOCABULARY = 20
WORDS = np.array([f"w{i}" for i in range(VOCABULARY)])
VALIDATION_SEED = 9


@keras.saving.register_keras_serializable(package="keras_attnvariants_tests")
class ToyModel(keras.Model):
    """Predicts a target from the target before it and the mean of the source."""

    def __init__(self, width=8, dropout=0.3, **kwargs):
        super().__init__(**kwargs)
        self.width = width
        self.source = keras.layers.Embedding(VOCABULARY, width)
        self.target = keras.layers.Embedding(VOCABULARY, width)
        self.hidden = keras.layers.Dense(width, activation="relu")
        self.dropout = keras.layers.Dropout(dropout)
        self.logits = keras.layers.Dense(VOCABULARY)
        self.build()

    def build(self, shapes=None):
        for layer in (self.source, self.target):
            layer.build((None, None))
        for layer in (self.hidden, self.dropout, self.logits):
            layer.build((None, None, self.width))
        self.built = True

    def call(self, inputs, training=None):
        source = ops.mean(self.source(inputs["source_ids"]), axis=1, keepdims=True)
        x = self.target(inputs["target_ids"]) + source
        return self.logits(self.dropout(self.hidden(x), training=training))

    def get_config(self):
        dropout = {"width": self.width, "dropout": self.dropout.rate}
        return {**super().get_config(), **dropout}


@functools.cache
def toy_tokenizer():
    """A real tokenizer: many times the size of a toy state."""
    return Tokenizer.train(["w1 w2 w3", "w4 w5 w6"], vocabulary_size=13)


def toy_model(seed=1, **kwargs):
    """A model whose weights and dropout depend on the seed only."""
    keras.utils.set_random_seed(seed)
    return ToyModel(**kwargs)


def batch(seed, number):
    """Batch `number`: targets repeat the source shifted by one, lengths vary."""
    ids = tf.random.stateless_uniform((8, 6), [seed, number], 4, VOCABULARY, tf.int32)
    lengths = tf.random.stateless_uniform((8,), [number, seed], 2, 6, tf.int32)
    weights = tf.sequence_mask(lengths, 5, dtype=tf.float32)
    labels = ids[:, 1:] * tf.cast(weights, tf.int32)
    return {"source_ids": ids, "target_ids": ids[:, :-1]}, labels, weights


def dataset_at(step, seed=5):
    """Endless training data from batch `step` on."""
    numbers = tf.data.Dataset.range(step, 2**31)
    return numbers.map(lambda number: batch(seed, tf.cast(number, tf.int32)))


def validation_data():
    return tf.data.Dataset.range(3).map(
        lambda number: batch(VALIDATION_SEED, tf.cast(number, tf.int32))
    )


class ToyTranslator:
    """Translates word by word: each source word to its likeliest next word."""

    def __init__(self, model):
        self.model = model

    def __call__(self, sources):
        rows = [[int(word[1:]) for word in text.split()] for text in sources]
        ids = np.array(rows, "int32")
        logits = self.model({"source_ids": ids, "target_ids": ids})
        best = ops.convert_to_numpy(ops.argmax(logits, axis=-1))
        return [" ".join(WORDS[row]) for row in best]


def validation_texts():
    ids = np.random.default_rng(3).integers(4, VOCABULARY, (16, 7))
    sources = [" ".join(WORDS[row[:-1]]) for row in ids]
    references = [" ".join(WORDS[(row[:-1] % 16) + 4]) for row in ids]
    return sources, references


def toy_config(**changes):
    settings = {
        "steps": 26,
        "learning_rate": NoamSchedule.from_peak(1e-2, warmup_steps=10),
        "label_smoothing": 0.1,
        "clipnorm": 1.0,
        "validate_every": 8,
        "save_every": 3,
        "log_every": 4,
        "average_last": 3,
    }
    return TrainingConfig(**{**settings, **changes})


def run(
    run_dir,
    config=None,
    model=None,
    bleu=True,
    tokenizer=None,
    training_data=dataset_at,
    **kwargs,
):
    """A whole toy run; returns the model and the result."""
    model = model or toy_model()
    if bleu:
        scorer = ValidationScore(ToyTranslator(model), *validation_texts())
        kwargs["callbacks"] = [scorer, *kwargs.get("callbacks", [])]
    kwargs = {"validation_data": validation_data(), "verbose": 0, **kwargs}
    config = config or toy_config()
    result = train(model, tokenizer, training_data, run_dir, config, **kwargs)
    return model, result


def stop_at(step):
    """A callback that asks the process to end after an update."""

    def ask(batch, logs):
        if batch == step - 1:
            os.kill(os.getpid(), signal.SIGTERM)

    return keras.callbacks.LambdaCallback(on_train_batch_end=ask)


def log(run_dir):
    """The records of a run's log."""
    return [
        json.loads(line)
        for line in (run_dir / "log.jsonl").read_text().split("\n")[:-1]
    ]


def variables(model):
    """Everything that training changes: weights, dropout seeds, optimizer."""
    everything = [*model.variables, *model.optimizer.variables]
    return to_arrays(everything)


def same(first, second):
    """Whether two lists of arrays are equal bit by bit."""
    return len(first) == len(second) and all(
        a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
        for a, b in zip(first, second, strict=True)
    )
