"""Our recipe, as a program that trains and reports its progress by CPU seconds.

    python recipe_training.py TASK.json

It prints one JSON object per line.
"""

import json
import os
import sys
import time
from pathlib import Path

from keras_attnvariants.utils.importing import lean_imports

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
with lean_imports():  # as `kav train`
    import keras
    import tensorflow as tf

import keras_attnvariants as kav
from keras_attnvariants.training.losses import smoothed_cross_entropy


class Reporter(keras.callbacks.Callback):
    """Reports at each point, and ends the training after the last.

    Args:
        points: CPU seconds of this process after which to report.
        validation: the validation set, in batches.
    """

    def __init__(self, points, validation):
        super().__init__()
        self.points = list(points)
        self.validation = validation
        self.updates = 0
        self.tokens = 0.0
        self.not_counted = 0.0  # seconds of scoring

    def on_train_begin(self, logs=None):
        used = time.process_time()
        parameters = self.model.count_params()
        print(json.dumps({"parameters": parameters, "start": used}), flush=True)

    def on_train_batch_end(self, batch, logs=None):
        self.updates += 1
        used = time.process_time() - self.not_counted
        while self.points and used >= self.points[0]:
            self.points.pop(0)
            self.report(used, float(logs["tokens"]))
        if not self.points:
            self.model.stop_training = True

    def report(self, used, tokens):
        """Prints the progress of the training."""
        start = time.process_time()
        loss, scored = self.score()
        self.not_counted += time.process_time() - start
        found = {"seconds": used, "tokens": tokens, "updates": self.updates}
        print(json.dumps({**found, "loss": loss, "scored": scored}), flush=True)

    def score(self):
        """Mean of `-log p` over the real target tokens, and their number."""

        @tf.function(reduce_retracing=True)
        def losses(inputs, labels, weights):
            logits = self.model(inputs, training=False)
            loss = smoothed_cross_entropy(logits, labels, 0.0, pad_id=0)
            return tf.reduce_sum(loss * weights), tf.reduce_sum(weights)

        found = [losses(*batch) for batch in self.validation]
        loss, tokens = (sum(map(float, part)) for part in zip(*found, strict=True))
        return loss / tokens, int(tokens)


def main(task) -> None:
    """Trains and reports."""
    data = (task["data"], task["source"], task["target"])
    corpus = kav.data.load_corpus(*data, cache_dir=task["cache"])
    tokenizer = kav.Tokenizer.load(task["tokenizer"])
    tokens = kav.data.TokenizedCorpus(corpus, tokenizer)
    # Separate shapes, so that no pair is too long for the training shapes.
    plan = tokens.plan("validation", 4096, None)
    validation = tokens._dataset(
        tf.data.Dataset.range(plan.num_batches), "validation", plan
    )
    run = Path(task["folder"])
    run.mkdir(parents=True, exist_ok=True)
    tokenizer.save(run / "tokenizer.model")
    schedule = kav.training.NoamSchedule.from_peak(
        task["learning_rate"], task["warmup_steps"]
    )
    kav.training.train_preset(
        kav.presets.get("kav/base/multi30k"),
        corpus,
        run,
        vocabulary_size=tokenizer.vocabulary_size,
        batch_tokens=task["batch_tokens"],
        sizes={**task["sizes"], "dropout": task["dropout"]},
        settings={
            "steps": 10**6,
            "learning_rate": schedule,
            "label_smoothing": task["label_smoothing"],
            "validate_every": 10**6,
            "save_every": 10**6,
        },
        precision=task["precision"],
        seed=task["seed"],
        score_sentences=0,
        samples=0,
        callbacks=[Reporter(task["points"], validation)],
        verbose=0,
    )


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text()))
