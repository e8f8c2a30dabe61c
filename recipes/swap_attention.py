"""Swap a variant into a functional Keras model that you already have.

    python recipes/swap_attention.py

The model decides whether a sequence has a token twice in a row, which depends only on
neighbours. It is trained with `keras.layers.MultiHeadAttention`, then with heads that
look at fixed distances: the call is the same, so nothing else changes.
"""

import argparse
import tempfile
from pathlib import Path

import keras
import numpy as np

import keras_attnvariants as kav

TOKENS, LENGTH, WIDTH = 20, 12, 32


def build_model(attention: keras.layers.Layer) -> keras.Model:
    """A classifier with one attention layer; 0 is padding."""
    ids = keras.Input((LENGTH,), dtype="int32")
    x = keras.layers.Embedding(TOKENS, WIDTH, mask_zero=True)(ids)
    x = keras.layers.LayerNormalization()(x + attention(x, x))
    x = keras.layers.Dense(WIDTH, activation="relu")(x)
    x = keras.layers.GlobalMaxPooling1D()(x)
    # float32, so that the loss is precise in mixed precision too.
    return keras.Model(ids, keras.layers.Dense(1, dtype="float32")(x))


def make_data(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Sequences, half of them with two equal neighbours, and their labels."""
    rng = np.random.default_rng(seed)
    ids = rng.integers(1, TOKENS, (count, LENGTH)).astype("int32")
    for place in range(1, LENGTH):
        same = ids[:, place] == ids[:, place - 1]
        ids[same, place] = ids[same, place] % (TOKENS - 1) + 1
    rows, places = np.arange(count // 2), rng.integers(1, LENGTH, count // 2)
    ids[rows, places] = ids[rows, places - 1]
    return ids, (ids[:, 1:] == ids[:, :-1]).any(axis=1).astype("float32")


def main() -> None:
    """Trains both models, saves the second and loads it again."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--examples", type=int, default=20_000)
    parser.add_argument("--output", type=Path, help="where to save; default: nowhere")
    options = parser.parse_args()

    keras.config.set_dtype_policy("mixed_bfloat16")
    training, test = make_data(options.examples, seed=1), make_data(1000, seed=2)
    for attention in (
        keras.layers.MultiHeadAttention(num_heads=4, key_dim=WIDTH // 4),
        kav.HardCodedAttention(num_heads=4, offsets=(-1, 0)),
    ):
        keras.utils.set_random_seed(1)
        model = build_model(attention)
        model.compile(
            optimizer=keras.optimizers.Adam(3e-3),
            loss=keras.losses.BinaryCrossentropy(from_logits=True),
            metrics=[keras.metrics.BinaryAccuracy(threshold=0.0, name="accuracy")],
            jit_compile=False,  # XLA would take longer to compile than to train
        )
        model.fit(*training, batch_size=128, epochs=options.epochs, verbose=0)
        scores = model.evaluate(*test, verbose=0, return_dict=True)
        name, size = type(attention).__name__, attention.count_params()
        print(f"{name}: {size:,} weights, accuracy {scores['accuracy']:.3f}")

    with tempfile.TemporaryDirectory() as folder:
        path = options.output or Path(folder) / "model.keras"
        model.save(path)
        loaded = keras.saving.load_model(path)
        same = np.array_equal(
            loaded.predict(test[0], verbose=0), model.predict(test[0], verbose=0)
        )
        print(f"Saved as {path.name} and loaded: the same predictions, {same}")


if __name__ == "__main__":
    main()
