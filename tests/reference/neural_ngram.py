"""Naive n-gram layers: multi-head (Loem et al. 2022), concatenated (Sun, Iyyer 2021).

One sentence and one position at a time: the vectors are put into a list, which is
concatenated and multiplied. Positions outside the sentence or in padding are zeros.
"""

import numpy as np


def neural_ngram(
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
    """Output `[B, T, dim]`, and no scores: `[B, 0, T, T]`."""
    groups = config["num_heads"] if config["head_input"] == "slice" else 1
    n = config["n"]
    distances = range(1 - n, 1 if config["causal"] else n)

    def head_values(b, t):
        window = [vector(value, value_mask, b, t + d) for d in distances]
        kernel = weights["ngram/kernel"]
        if config["global_context"]:
            window.append(maximum(value, value_mask, b))
            kernel = np.concatenate([kernel, weights["global/kernel"]], axis=1)
        heads = []
        for group in range(groups):
            parts = [np.split(x, groups)[group] for x in window]
            matrix = kernel[group].reshape(-1, kernel.shape[-1])
            heads.append(np.concatenate(parts) @ matrix)
        bias = np.ravel(weights.get("ngram/bias", 0.0))
        return np.maximum(np.concatenate(heads) + bias, 0.0)

    context = positions(query, query_mask, value_mask, head_values)
    if config["output_projection"]:
        context = context @ weights["output/kernel"] + weights.get("output/bias", 0.0)
    return context, no_scores(query)


def concatenated_ngram(
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
    """Output `[B, T, dim]`, and no scores: `[B, 0, T, T]`."""
    n, size = config["n"], config["far_size"]
    sides = [-1] if config["causal"] else [-1, 1]

    def vectors(b, t):
        found = [vector(value, value_mask, b, t)]
        for side in sides:
            for distance in range(1, n):
                found.append(vector(value, value_mask, b, t + side * distance))
            for window in range(config["far_windows"]):
                start = n + window * size
                far = [
                    vector(value, value_mask, b, t + side * distance)
                    for distance in range(start, start + size)
                ]
                found.append(sum(far) / size)
        return found

    def output(b, t):
        found = vectors(b, t)
        hidden = np.concatenate(found) @ weights["hidden/kernel"]
        hidden = np.maximum(hidden + weights.get("hidden/bias", 0.0), 0.0)
        return hidden @ weights["output/kernel"] + sum(found) - found[0]

    result = positions(query, query_mask, value_mask, output)
    return result + weights.get("output/bias", 0.0), no_scores(query)


def vector(value, mask, b, position):
    """The vector at a position, zeros where there is none."""
    inside = 0 <= position < value.shape[1]
    if not inside or (mask is not None and not mask[b, position]):
        return np.zeros(value.shape[-1])
    return value[b, position].astype("float64")


def maximum(value, mask, b):
    """The elementwise maximum over the real positions of a sentence."""
    real = [value[b, j] for j in range(value.shape[1]) if mask is None or mask[b, j]]
    return np.max(real, axis=0) if real else np.zeros(value.shape[-1])


def positions(query, query_mask, value_mask, function):
    """`function(b, t)` at every real position `t` of every sentence, 0 elsewhere."""
    batch, length = query.shape[:2]
    rows = {
        (b, t): function(b, t)
        for b, t in np.ndindex(batch, length)
        if (query_mask is None or query_mask[b, t])
        and (value_mask is None or value_mask[b, t])
    }
    result = np.zeros((batch, length, len(function(0, 0))))
    for place, row in rows.items():
        result[place] = row
    return result


def no_scores(query):
    """Scores without heads, for a layer that has no weights."""
    return np.zeros((query.shape[0], 0, query.shape[1], query.shape[1]))
