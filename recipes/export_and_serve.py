"""Export a model as a SavedModel, and use it as a server would.

    python recipes/export_and_serve.py runs/quickstart saved_models/quickstart

TensorFlow Serving loads the same folder, and needs no Python code of this package.
"""

import argparse
from pathlib import Path

import tensorflow as tf
import tensorflow_text  # noqa: F401 (registers the operators of the tokenizer)

import keras_attnvariants as kav

TEXTS = ["In the beginning was the Word.", "And there was light.", ""]


def main() -> None:
    """Exports, loads the SavedModel and calls its signatures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("run", type=Path, help="folder of a training run")
    parser.add_argument("output", type=Path, help="folder of all exported versions")
    options = parser.parse_args()

    model, tokenizer = kav.training.load_run(options.run)
    path = kav.serving.export(model, tokenizer, options.output, beam_size=4, n_best=2)
    print(f"Exported {path}")

    # From here on, only TensorFlow and TensorFlow Text are used.
    signatures = tf.saved_model.load(str(path)).signatures
    best = signatures["serving_default"](text=tf.constant(TEXTS))
    for text, translation in zip(TEXTS, best["translations"].numpy(), strict=True):
        print(f"{text!r} -> {translation.decode()!r}")

    # Several translations of each text, best first, with their scores.
    several = signatures["nbest"](text=tf.constant(TEXTS[:1]))
    for translation, score in zip(
        several["translations"][0].numpy(), several["scores"][0].numpy(), strict=True
    ):
        print(f"{score:7.2f}  {translation.decode()}")

    # The log probability of a given translation.
    score = signatures["score"](
        source=tf.constant(TEXTS[1:2]), target=best["translations"][1:2]
    )
    print(f"log probability {float(score['log_probs'][0]):.2f}")


if __name__ == "__main__":
    main()
