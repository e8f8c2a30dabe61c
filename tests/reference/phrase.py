"""Naive phrase-based attention (Nguyen and Joty 2018), from the equations.

The n-gram of order `n` at `t` is the tokens `t - n + 1 .. t`. Its key and value are
convolutions, `Conv_n(X, W)_t = sum_r X_{t-n+1+r} W[r]` with zeros before the sentence,
or its score is that of a query kernel laid over its keys. One sentence, head, query and
n-gram at a time; the streams of the interleaved structure are really interleaved and
convolved with stride 2.
"""

import numpy as np

from tests.reference.dot_product import softmax_over
from tests.reference.projections import allowed
from tests.reference.projections import merge_heads


def phrase_attention(
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
    """Output `[B, T, dim]` and weights `[B, H, T, M * N * S]`."""
    key = value if key is None else key
    batch, length = query.shape[:2]
    source = value.shape[1]
    structure = config["structure"]["class_name"]
    ahead = config["structure"]["config"].get("look_ahead", False)
    real = np.ones((batch, source), bool) if value_mask is None else value_mask
    asks = np.ones((batch, length), bool) if query_mask is None else query_mask
    pattern = allowed((batch, length, source), None, None, attention_mask, causal)
    streams = (1, 2) if structure == "Interleaved" else (1,)
    contexts, scores = [], []
    for heads, orders, prefix in groups(config):
        parts = Weights(config, weights, heads, prefix)
        found, alpha = zip(
            *(
                attend(
                    parts,
                    orders,
                    streams,
                    query[b],
                    np.where(real[b][:, None], key[b], 0.0),
                    np.where(real[b][:, None], value[b], 0.0),
                    real[b] if ahead else asks[b],
                    real[b],
                    pattern[b],
                    structure == "Homogeneous",
                )
                for b in range(batch)
            ),
            strict=True,
        )
        contexts.append(np.stack(found))  # [B, M, T, H, D]
        scores.append(np.stack(alpha))  # [B, H, T, M, N, S]
    context = np.concatenate(contexts, axis=3)
    scores = np.concatenate(scores, axis=1) * asks[:, None, :, None, None, None]
    scores = scores.reshape(*scores.shape[:3], -1)
    if structure == "Interleaved":
        return interleave(weights, context, asks, ahead), scores
    return merge_heads(weights, context[:, 0] * asks[:, :, None, None]), scores


def groups(config):
    """Heads, orders and weight-name prefix of each group of heads."""
    structure = config["structure"]
    if structure["class_name"] == "Homogeneous":
        return [
            (heads, [n + 1], f"order_{n + 1}_")
            for n, heads in enumerate(structure["config"]["heads"])
            if heads
        ]
    return [(config["num_heads"], structure["config"].get("orders", [1, 2]), "")]


class Weights:
    """The kernels of a group of heads, by head and token of an n-gram."""

    def __init__(self, config, weights, heads, prefix):
        self.scoring = config["scoring"]
        self.weights, self.heads, self.prefix = weights, heads, prefix

    def convolve(self, name, order, inputs, taps=1):
        """`Conv_order` of `[L, d]`: `[L, H, taps, D]`, for queries that are kernels."""
        kernel = self.weights[f"{self.prefix}{name}/kernel"]
        kernel = kernel.reshape(order, inputs.shape[1], self.heads, taps, -1)
        result = np.zeros((len(inputs), *kernel.shape[2:]))
        for t, r in np.ndindex(len(inputs), order):
            if t - order + 1 + r >= 0:
                token = inputs[t - order + 1 + r]
                result[t] += np.einsum("d,dhre->hre", token, kernel[r])
        bias = self.weights.get(f"{self.prefix}{name}/bias")
        return result if bias is None else result + bias.reshape(result.shape[1:])


def attend(parts, orders, streams, query, key, value, asks, real, pattern, padded):
    """One sentence: contexts `[M, T, H, D]` and weights `[H, T, M, N, S]`."""
    length, source, heads = len(query), len(value), parts.heads
    values = np.stack([parts.convolve(f"value_{n}", n, value) for n in orders])
    values = values[:, :, :, 0]  # [N, S, H, D]
    keys = projected_keys(parts, orders, key)
    context = np.zeros((len(streams), length, heads, values.shape[-1]))
    scores = np.zeros((heads, length, len(streams), len(orders), source))
    for s, order in enumerate(streams):
        kernels = query_kernels(parts, orders, order, query)
        for i in range(length):
            tokens = range(i - order + 1, i + 1)
            if order > 1 and not all(t >= 0 and asks[t] for t in tokens):
                continue
            mask = np.array(
                [
                    [usable(n, t, real, pattern[i], padded) for t in range(source)]
                    for n in orders
                ]
            )
            for h in range(heads):
                logits = np.zeros((len(orders), source))
                for j, n in enumerate(orders):
                    for t in np.flatnonzero(mask[j]):
                        logits[j, t] = score(
                            parts.scoring, kernels[j][i, h], keys[j][:, h], n, t
                        )
                alpha = softmax_over(logits.ravel(), mask.ravel())
                scores[h, i, s] = alpha.reshape(logits.shape)
                context[s, i, h] = np.einsum(
                    "nt,ntd->d", scores[h, i, s], values[:, :, h]
                )
    return context, scores


def usable(n, t, real, pattern, padded):
    """Whether a query may use the n-gram at `t`: it must see all of its tokens."""
    if not (real[t] and pattern[t]):
        return False
    for token in range(t - n + 1, t):
        exists = token >= 0 and real[token]
        if not (pattern[token] if exists else padded):
            return False
    return True


def projected_keys(parts, orders, key):
    """Keys by order: of the n-gram at `t`, or of its tokens one by one; `[S, H, D]`."""
    if parts.scoring == "conv_kv":
        return [parts.convolve(f"key_{n}", n, key)[:, :, 0] for n in orders]
    if parts.scoring == "query_k":
        return [parts.convolve("key", 1, key)[:, :, 0]] * len(orders)
    return [parts.convolve(f"key_{n}", 1, key)[:, :, 0] for n in orders]


def query_kernels(parts, orders, order, query):
    """Queries of one stream by order of the n-grams: `[T, H, taps, D]`."""
    if parts.scoring == "conv_kv":
        return [parts.convolve(f"query_{order}", order, query)] * len(orders)
    return [parts.convolve(f"query_{order}_{n}", order, query, n) for n in orders]


def score(scoring, kernel, keys, n, t):
    """Equation 5 or 6: a query `[taps, D]` against the n-gram at `t` of `[S, D]`."""
    if scoring == "conv_kv":
        return kernel[0] @ keys[t] / np.sqrt(kernel.shape[-1])
    total = 0.0
    for r in range(n):
        if t - n + 1 + r >= 0:
            total += kernel[r] @ keys[t - n + 1 + r]
    return total / np.sqrt(n * kernel.shape[-1])


def interleave(weights, context, asks, ahead):
    """The strided convolution over `0, u_1, b_1, u_2, …, b_{N-1}, u_N (, 0)`.

    `context[:, 1]` holds the phrase that ends at a position.
    """
    batch, _, length, heads, width = context.shape
    taps = 3 if ahead else 2
    kernel = weights["output/kernel"].reshape(taps, heads * width, -1)
    flat = context.reshape(batch, 2, length, heads * width)
    output = np.zeros((batch, length, kernel.shape[-1]))
    for b in range(batch):
        sequence = [np.zeros(heads * width)]
        for t in range(length):
            if t:
                sequence.append(flat[b, 1, t])
            sequence.append(flat[b, 0, t])
        sequence.append(np.zeros(heads * width))
        for t, r in np.ndindex(length, taps):
            output[b, t] += asks[b, t] * (sequence[2 * t + r] @ kernel[r])
    return output + weights.get("output/bias", 0.0)
