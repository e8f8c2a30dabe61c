"""Naive recurrent cross-attention (Rosendahl et al. 2021), Eq. 2 to 10 word for word.

One sentence and one target position at a time: queries are rebuilt from the previous
context or weights, the extra pair is appended to the lists of keys and values, and
the energies are accumulated in a loop. A recurrence runs on through target positions
that `query_mask` excludes; their outputs and weights are 0.
"""

import numpy as np

from tests.reference.dot_product import softmax_over
from tests.reference.projections import allowed
from tests.reference.projections import merge_heads
from tests.reference.projections import split_heads


def recurrent_cross_attention(
    config,
    weights,
    query,
    value,
    key=None,
    query_mask=None,
    value_mask=None,
    attention_mask=None,
    causal=False,
):
    """Output `[B, T, dim]` and weights over the source `[B, H, T, S]`."""
    heads = config["num_heads"]
    k = split_heads(weights, "key", heads, value if key is None else key)
    v = split_heads(weights, "value", heads, value)
    batch, length = query.shape[:2]
    shape = (batch, length, value.shape[1])
    visible = allowed(shape, None, value_mask, attention_mask, causal)
    scores = np.zeros((batch, heads, length, value.shape[1]))
    context = np.zeros((batch, length, heads, v.shape[-1]))
    for b in range(batch):
        real = np.ones(shape[2], bool) if value_mask is None else value_mask[b]
        sentence = SENTENCES[config["recurrence"]["class_name"]](
            config, weights, k[b], v[b], real
        )
        for i in range(length):
            scores[b, :, i], context[b, i] = sentence.step(query[b, i], visible[b, i])
    if query_mask is not None:
        scores = scores * query_mask[:, None, :, None]
        context = context * query_mask[..., None, None]
    return merge_heads(weights, context), scores


class Sentence:
    """Plain attention of one sentence to its source, step by step: no recurrence."""

    def __init__(self, config, weights, keys, values, real):
        self.options = config["recurrence"]["config"]
        self.weights = weights
        self.keys, self.values = keys, values  # [S, H, D]
        self.real = real  # [S]
        self.heads = keys.shape[1]
        self.scale = 1 / np.sqrt(keys.shape[2])
        self.is_first = True
        self.contexts = np.zeros(values.shape[1:])  # [H, D]
        self.last = np.zeros((self.heads, len(keys)))  # [H, S]
        self.sums = np.zeros((self.heads, len(keys)))

    def step(self, s, visible):
        """Weights `[H, S]` and contexts `[H, D]` for one input `[dim]`."""
        alphas, contexts = [], []
        for n in range(self.heads):
            alpha, context = self.head(n, s, visible)
            alphas.append(alpha)
            contexts.append(context)
        self.is_first = False
        self.last, self.contexts = np.array(alphas), np.array(contexts)
        self.sums = self.sums + self.last
        return self.last, self.contexts

    def head(self, n, s, visible):
        alpha = softmax_over(self.energies(n, s), visible)
        return alpha, alpha @ self.values[:, n]

    def energies(self, n, s):
        return self.scale * self.keys[:, n] @ self.project(n, s, self.matrix(n))

    def project(self, n, s, matrix):
        """`s W_q`, and the bias of the queries if there is one."""
        bias = self.weights.get("query/bias", np.zeros(self.keys.shape[1:]))
        return s @ matrix + bias.reshape(self.heads, -1)[n]

    def matrix(self, n, name="query"):
        """A head's columns of a kernel."""
        kernel = self.weights[f"{name}/kernel"]
        return kernel.reshape(len(kernel), self.heads, -1)[:, n]


class PreviousContext(Sentence):
    """Eq. 2: `q_i = [s_i ; c_{i-1}] W`."""

    def energies(self, n, s):
        extended = np.concatenate([s, self.contexts[n]])
        rows = [self.matrix(n), self.weights["recurrent_query/kernel"][n]]
        return (
            self.scale
            * self.keys[:, n]
            @ self.project(n, extended, np.concatenate(rows))
        )


class PreviousWeights(Sentence):
    """Eq. 3: `q_ij = [s_i ; alpha_{i-1,j}] W`."""

    def energies(self, n, s):
        rows = [self.matrix(n), self.matrix(n, "recurrent_query")]
        rows = np.concatenate(rows)  # [dim + 1, D]
        return np.array(
            [
                self.scale * k @ self.project(n, np.append(s, weight), rows)
                for k, weight in zip(self.keys[:, n], self.past()[n], strict=True)
            ]
        )

    def past(self):
        return self.last


class AccumulatedWeights(PreviousWeights):
    """Eq. 4: the same with the sum of the weights."""

    def past(self):
        return self.sums


class SubtractedWeights(Sentence):
    """Eq. 10: `z_i = e_i - lambda / sqrt(d_k) A_{i-1}`."""

    def energies(self, n, s):
        past = self.options["rate"] * self.scale * self.sums[n]
        return super().energies(n, s) - past


class AccumulatedEnergies(Sentence):
    """Eq. 9: `z_i = lambda e_i + (1 - lambda) Box z_{i-1}`, 0 outside the sentence."""

    def __init__(self, *args):
        super().__init__(*args)
        self.z = [np.zeros(len(self.keys)) for _ in range(self.heads)]

    def energies(self, n, s):
        e = np.where(self.real, super().energies(n, s), 0.0)
        rate = self.options["rate"]
        if self.is_first and self.options["start"] == "first":
            self.z[n] = e
        else:
            box = [self.box(j, self.z[n]) for j in range(len(e))]
            self.z[n] = np.where(self.real, rate * e + (1 - rate) * np.array(box), 0.0)
        return self.z[n]

    def box(self, j, z):
        """The mean of `z` around position `j`."""
        radius = self.options["radius"]
        around = slice(max(j - radius, 0), j + radius + 1)
        if self.options["renormalize"]:
            return z[around].sum() / max(self.real[around].sum(), 1)
        return z[around].sum() / (2 * radius + 1)


class ExpandedList(Sentence):
    """Eq. 5 to 8: one more key and value, made from the previous context."""

    def head(self, n, s, visible):
        if not visible.any():
            return np.zeros(len(self.keys)), np.zeros(self.values.shape[2])
        key, value = self.pair(n)
        keys = np.concatenate([self.keys[:, n], [key]])
        values = np.concatenate([self.values[:, n], [value]])
        open_pair = not (self.is_first and self.options["mask_first"])
        energies = self.scale * keys @ self.project(n, s, self.matrix(n))
        alpha = softmax_over(energies, np.append(visible, open_pair))
        return alpha[:-1], alpha @ values

    def full_context(self):
        """`c_{i-1}`, all heads through the output projection."""
        return merge_heads(self.weights, self.contexts[None, None])[0, 0]


class ExpandedShared(ExpandedList):
    """Eq. 5: `(c W_k, c W_v)`, with the matrices of the source."""

    names = ("key", "value")

    def pair(self, n):
        c = self.full_context()[None, None]
        return [
            split_heads(self.weights, name, self.heads, c)[0, 0, n]
            for name in self.names
        ]


class ExpandedFull(ExpandedShared):
    """Eq. 6: the same with matrices of its own."""

    names = ("recurrent_key", "recurrent_value")


class ExpandedHead(ExpandedList):
    """Eq. 7: `(c^n W_gk, c^n W_gv)`, of the head's own context."""

    def pair(self, n):
        key = self.contexts[n] @ self.weights["recurrent_key/kernel"][n]
        return key, self.extra_value(n)

    def extra_value(self, n):
        return self.contexts[n] @ self.weights["recurrent_value/kernel"][n]


class ExpandedHeadKey(ExpandedHead):
    """Eq. 8: `(c^n W_gk, c^n)`."""

    def extra_value(self, n):
        return self.contexts[n]


SENTENCES = {
    cls.__name__: cls
    for cls in (
        PreviousContext,
        PreviousWeights,
        AccumulatedWeights,
        SubtractedWeights,
        AccumulatedEnergies,
        ExpandedShared,
        ExpandedFull,
        ExpandedHead,
        ExpandedHeadKey,
    )
}
