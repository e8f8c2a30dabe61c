"""The recurrent models written out in NumPy, float64: sentence by sentence.

The context is computed, everything is in the loop, and padding is cut off.
"""

import numpy as np


def variables(model) -> dict:
    """The weights of a `Seq2SeqLSTM` by the names used here."""
    embeddings, encoder, decoder = model.embeddings, model.encoder, model.decoder
    found = {
        "source": embeddings.source.embeddings,
        "target": embeddings.target.embeddings,
        "output": embeddings.output_dense.kernel,
        "output_bias": embeddings.output_dense.bias,
        "encoder": encoder.recurrent_kernel,
        "decoder": decoder.recurrent_kernel,
        "decoder_input": decoder.input_dense.kernel,
        "decoder_bias": decoder.input_dense.bias,
    }
    for d, dense in enumerate(encoder.input_denses):
        found |= {f"encoder_input_{d}": dense.kernel, f"encoder_bias_{d}": dense.bias}
    if decoder.attention:
        found["decoder_context"] = decoder.context_dense.kernel
    return found


def logits_and_weights(values, config, source_ids, target_ids):
    """`[B, T, V]` and attention weights, a list of `[T, S]` over real tokens."""
    pairs = [
        translate(values, config, source, target)
        for source, target in zip(source_ids, target_ids, strict=True)
    ]
    return np.stack([logits for logits, _ in pairs]), [alphas for _, alphas in pairs]


def loss(values, config, batch, labels) -> float:
    """Mean cross-entropy over all positions, padded ones too."""
    logits, _ = logits_and_weights(values, config, *batch.values())
    normalizer = np.log(np.exp(logits).sum(-1))
    chosen = np.take_along_axis(logits, labels[:, :, None], axis=-1)[:, :, 0]
    return float((normalizer - chosen).mean())


def translate(values, config, source, target):
    """Logits `[T, V]` of a target, and the weights of every position."""
    if config["mask_padding"]:
        source = source[source != config["pad_id"]]
    annotations, s, c = encode(values, config, values["source"][source])
    logits, alphas = [], []
    for token in target:
        x, matrix = values["target"][token], values["decoder_input"]
        if config["attention"]:
            energies = np.array([s @ h for h in annotations])
            alpha = np.exp(energies) / np.exp(energies).sum()
            parts = [a * h for a, h in zip(alpha, annotations, strict=True)]
            context = sum(parts, start=np.zeros(len(s)))
            x = np.concatenate([x, context])
            matrix = np.concatenate([matrix, values["decoder_context"]])
            alphas.append(alpha)
        s, c = cell(x @ matrix + s @ values["decoder"] + values["decoder_bias"], c)
        logits.append(s @ values["output"] + values["output_bias"])
    return np.array(logits), np.array(alphas)


def encode(values, config, x):
    """Annotations `[S, units]`, and the last hidden and cell state."""
    directions = [run(values, 0, x)]
    if config["bidirectional"]:
        hidden, h, c = run(values, 1, x[::-1])
        directions.append((hidden[::-1], h, c))
    parts = zip(*directions, strict=True)
    return [np.concatenate(part, axis=-1) for part in parts]


def run(values, direction, x):
    """All hidden states, the last one, and the last cell state."""
    u = values["encoder"][direction]
    h, c, hidden = np.zeros(len(u)), np.zeros(len(u)), []
    for row in x:
        z = row @ values[f"encoder_input_{direction}"] + h @ u
        h, c = cell(z + values[f"encoder_bias_{direction}"], c)
        hidden.append(h)
    return np.reshape(hidden, (len(x), len(u))), h, c


def cell(z, c):
    """Hidden and cell state from the four gates side by side."""
    i, f, o, g = np.split(z, 4)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def sigmoid(x):
    return 1 / (1 + np.exp(-x))
