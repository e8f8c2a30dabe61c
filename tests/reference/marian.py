"""Naive Transformer of Marian: post-norm, one sentence, in float64.

From Marian's `src/models/transformer.h`, with its names of weights: the decoder begins
with a vector of zeros, and sources end with `</s>`. Its normalization adds 1e-6 to the
variance. Hugging Face's MarianMT differs in that (1e-5), in the exponent of positions,
and in the first input of the decoder, which is an embedding.
"""

import numpy as np

from tests.reference.dot_product import dot_product_attention

ACTIVATIONS = {
    "relu": lambda x: np.maximum(x, 0),
    "swish": lambda x: x / (1 + np.exp(-x)),
    "gelu": lambda x: x / (1 + np.exp(-1.702 * x)),
}


def logits(weights, heads, source_ids, target_ids, activation="relu", like=None):
    """Logits `[T + 1, V]` after the start and each of `target_ids`.

    `source_ids` end with `</s>`. `like` has `epsilon`, `exponent_width` and `start` of
    Hugging Face.
    """
    like = like or {"epsilon": 1e-6, "exponent_width": -2, "start": None}
    model = Model(weights, heads, ACTIVATIONS[activation], like)
    encoded = model.embedded("encoder", weights_of(weights, "encoder")[source_ids])
    for prefix in model.layers("encoder"):
        encoded = model.attended(f"{prefix}_self", encoded, encoded)
        encoded = model.fed(f"{prefix}_ffn", encoded)
    table = weights_of(weights, "decoder")
    start = np.zeros_like(table[0]) if like["start"] is None else table[like["start"]]
    x = model.embedded("decoder", np.stack([start, *table[target_ids]]))
    for prefix in model.layers("decoder"):
        x = model.attended(f"{prefix}_self", x, x, causal=True)
        x = model.attended(f"{prefix}_context", x, encoded)
        x = model.fed(f"{prefix}_ffn", x)
    projection = weights.get("decoder_ff_logit_out_W", table.T)
    return x @ projection + weights["decoder_ff_logit_out_b"][0]


def weights_of(weights, stack):
    """The embeddings of a side."""
    return weights["Wemb"] if "Wemb" in weights else weights[f"{stack}_Wemb"]


class Model:
    """The layers of the model; `[L, d]` to `[L, d]`."""

    def __init__(self, weights, heads, activation, like):
        self.weights = {k: v.astype("float64") for k, v in weights.items()}
        self.heads, self.activation, self.like = heads, activation, like

    def layers(self, stack):
        """Prefixes of the layers of a stack."""
        names = {n.split("_")[1] for n in self.weights if n.startswith(f"{stack}_l")}
        return [f"{stack}_{name}" for name in sorted(names)]

    def embedded(self, stack, rows):
        """Scaled embeddings with all sines, then all cosines."""
        width = rows.shape[1]
        x = rows * np.sqrt(width)
        for position, vector in enumerate(x):
            for i in range(width // 2):
                exponent = 2 * i / (width + self.like["exponent_width"])
                angle = position / 10000**exponent
                vector[i] += np.sin(angle)
                vector[width // 2 + i] += np.cos(angle)
        return x

    def attended(self, prefix, query, value, causal=False):
        """Attention, residual and normalization."""
        names = {"q": "query", "k": "key", "v": "value", "o": "output"}
        projections = {
            f"{ours}/{kind}": self.weights[f"{prefix}_{letter}{short}"]
            for short, ours in names.items()
            for letter, kind in (("W", "kernel"), ("b", "bias"))
        }
        config = {"num_heads": self.heads}
        y, _ = dot_product_attention(
            config, projections, query[None], value[None], causal=causal
        )
        return self.normalized(f"{prefix}_Wo", query + y[0])

    def fed(self, prefix, x):
        """Feed-forward, residual and normalization."""
        w = self.weights
        hidden = self.activation(x @ w[f"{prefix}_W1"] + w[f"{prefix}_b1"])
        y = hidden @ w[f"{prefix}_W2"] + w[f"{prefix}_b2"]
        return self.normalized(f"{prefix}_ffn", x + y)

    def normalized(self, prefix, x):
        centred = x - x.mean(-1, keepdims=True)
        variance = (centred**2).mean(-1, keepdims=True)
        x = centred / np.sqrt(variance + self.like["epsilon"])
        scale, bias = (self.weights[f"{prefix}_ln_{k}"] for k in ("scale", "bias"))
        return x * scale + bias
