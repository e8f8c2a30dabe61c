"""A Transformer of this package that trains on requests from standard input.

Answers the same requests as `torch_training.py`. Its task has `policy` and `jit`
instead of `bfloat16` and `compile`, and it writes its initial weights, which its
parent process passes on, instead of reading them.
"""

import json
import os
import sys

import keras
import numpy as np

import keras_attnvariants as kav


class Training:
    """A model, compiled as kav.training.train compiles it, and its batches."""

    def __init__(self, task):
        keras.config.set_dtype_policy(task["policy"])
        keras.utils.set_random_seed(1)
        preset = kav.presets.get("kav/base/multi30k")
        self.model = preset.build(**task["sizes"], dropout=task["dropout"])
        self.model.compile(
            keras.optimizers.Adam(task["learning_rate"], beta_2=0.98, epsilon=1e-8),
            kav.training.LabelSmoothedCrossEntropy(task["smoothing"]),
            jit_compile=task["jit"],
        )
        arrays = np.load(task["batches"])
        self.batches = [
            ({"source_ids": source, "target_ids": target}, labels)
            for source, target, labels in zip(
                arrays["source"], arrays["target"], arrays["labels"], strict=True
            )
        ]
        weights = {
            weight.path.partition("/")[2]: weight.numpy()
            for weight in self.model.weights
        }
        np.savez(task["weights"], **weights)
        self.updates = 0

    def update(self) -> float:
        """Makes one update on the next batch; returns the loss before it."""
        inputs, labels = self.batches[self.updates % len(self.batches)]
        # Keras would return the mean since the last reset.
        self.model.reset_metrics()
        loss = self.model.train_on_batch(inputs, labels)
        self.updates += 1
        return float(np.ravel(loss)[0])


def main() -> None:
    """Answers until standard input ends."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    training = None
    for line in sys.stdin:
        request = json.loads(line)
        if "task" in request:
            training = Training(request["task"])
            answer = {
                "parameters": training.model.count_params(),
                "version": kav.__version__,
            }
        else:
            answer = {"losses": [training.update() for _ in range(request["updates"])]}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
