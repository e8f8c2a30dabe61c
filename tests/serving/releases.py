"""Compares what an exported model answers in several releases of TensorFlow.

    python -m tests.serving.releases MODEL TEXTS PYTHON...

MODEL is a version folder, TEXTS a file of sentences, and every PYTHON the interpreter
of an environment with TensorFlow and TensorFlow Text. Prints how many translations and
scores are equal.
"""

import argparse
import json
import subprocess
from pathlib import Path

import numpy as np

from tests.serving.tools import OtherProcess

VERSIONS = """
import tensorflow, tensorflow_text
print(tensorflow.__version__, tensorflow_text.__version__)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("texts", type=Path)
    parser.add_argument("pythons", type=Path, nargs="+", metavar="PYTHON")
    parser.add_argument("--count", type=int, default=256, help="sentences (256)")
    options = parser.parse_args()
    info = json.loads((options.model / "assets.extra" / "model_info.json").read_text())
    size = info["options"]["max_batch"]
    texts = options.texts.read_text("utf-8").split("\n")[: options.count]
    batches = [texts[i : i + size] for i in range(0, len(texts), size)]
    answers = {}
    for python in options.pythons:
        name = version(python)
        answers[name] = answer(python, options.model, batches)
        print(f"{name}: {len(texts)} sentences translated", flush=True)
    first, *others = answers
    for other in others:
        same = [
            int(np.sum(answers[first][key] == answers[other][key]))
            for key in ("translations", "scores")
        ]
        print(f"{first} and {other}: {same[0]} equal translations, {same[1]} scores")


def version(python: Path) -> str:
    """The releases of TensorFlow and TensorFlow Text of an interpreter."""
    command = [str(python), "-c", VERSIONS]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    return "TensorFlow {}, Text {}".format(*result.stdout.split()[-2:])


def answer(
    python: Path, model: Path, batches: list[list[str]]
) -> dict[str, np.ndarray]:
    """Translations and scores of all batches."""
    process = OtherProcess("keras_attnvariants", python=python)
    try:
        parts = [
            process.call(model, "serving_default", text=batch) for batch in batches
        ]
    finally:
        process.close()
    return {
        key: np.concatenate([part[key] for part in parts])
        for key in ("translations", "scores")
    }


if __name__ == "__main__":
    main()
