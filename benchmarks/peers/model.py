"""The model that all programs decode, in the form of the least flexible program.

That is Hugging Face's MarianMT: normalisation after the residual, biases everywhere
but at the output, one embedding matrix for source, target and output. The weights are
random. PAD, UNK, BOS and EOS have embeddings of 0, and so logits of 0: they are never
among the best, so it does not matter how a program forbids them.
"""

import re
from pathlib import Path

import keras
import numpy as np

import keras_attnvariants as kav

SPECIAL_IDS = [0, 1, 2, 3]

# Standard deviations of outputs for inputs of 1. Sharp attention to a few tokens, and
# feed-forward layers that outweigh the average over them, make the next token depend
# on all before it and on the source; equal gains make models that repeat one token.
GAINS = {
    "self_attention/query": 1.5,
    "self_attention/key": 1.5,
    "cross_attention/query": 1.5,
    "cross_attention/key": 1.5,
    "feed_forward/intermediate": 2.0,
    "feed_forward/output": 2.0,
}
OTHER_GAIN = 0.5
NOISE = 0.05


def build(sizes: dict[str, int]) -> kav.Transformer:
    """The model, from arguments of `Transformer` and `num_heads`."""
    sizes = dict(sizes)
    attention = kav.DotProductAttention(sizes.pop("num_heads"), use_bias=True)
    return kav.Transformer(
        **sizes,
        encoder_attention=attention,
        decoder_attention=attention,
        cross_attention=attention,
        normalization="post",
        dropout=0.0,
    )


def named_weights(model: kav.Transformer) -> dict[str, keras.Variable]:
    """The weights by names of layers, without the model's name and Keras' numbers."""
    paths = {weight.path.partition("/")[2]: weight for weight in model.weights}
    return {
        re.sub(r"feed_forward\w*", "feed_forward", path): weight
        for path, weight in paths.items()
    }


def random_weight(name: str, shape: tuple[int, ...], rng) -> np.ndarray:
    """A random value for the weight of that name."""
    noise = rng.standard_normal(shape)
    _, layer, kind = name.split("/", 1)[0], *name.rsplit("/", 1)
    if kind == "kernel":
        gain = GAINS.get(layer.partition("/")[2], OTHER_GAIN)
        noise *= gain / np.sqrt(shape[0])
        # Units of a rectifier have a mean, which would be the same for all inputs.
        return noise - noise.mean(0) if layer.endswith("feed_forward/output") else noise
    if kind == "embeddings":
        noise[SPECIAL_IDS] = 0
        return noise / np.sqrt(shape[1])
    return (kind == "gamma") + NOISE * noise


def write(path: Path, sizes: dict[str, int]) -> None:
    """Writes random weights of the model, and its table of `positions`."""
    model = build(sizes)
    rng = np.random.default_rng(0)
    weights = {
        name: random_weight(name, tuple(weight.shape), rng).astype("float32")
        for name, weight in named_weights(model).items()
    }
    np.savez(path, **weights, positions=model.embeddings.positions.table)


def read(path: Path, sizes: dict[str, int]) -> kav.Transformer:
    """The model with the weights that `write` wrote."""
    model = build(sizes)
    with np.load(path) as values:
        for name, weight in named_weights(model).items():
            weight.assign(values[name])
    return model
