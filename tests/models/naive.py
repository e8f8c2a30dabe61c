"""The Transformer written out in NumPy, float64: the truth about its flavours."""

import numpy as np
from keras import ops

from tests.reference import REFERENCES
from tests.reference import layer_weights


def logits(model, source_ids, target_ids) -> np.ndarray:
    """`[B, T, V]` from the model's configuration and weights alone."""
    config = model.get_config()
    source_mask = source_ids != config["pad_id"]
    x = embed(model, config, "source", source_ids)
    for block in model.encoder_blocks:
        x = sublayer(
            config,
            block.self_residual,
            x,
            lambda y, layer=block.self_attention: attend(
                layer, y, y, value_mask=source_mask
            ),
        )
        x = feed(config, block, x)
    encoded = final_norm(model, "encoder_norm", x)
    x = embed(model, config, "target", target_ids)
    for block in model.decoder_blocks:
        x = sublayer(
            config,
            block.self_residual,
            x,
            lambda y, layer=block.self_attention: attend(layer, y, y, causal=True),
        )
        x = sublayer(
            config,
            block.cross_residual,
            x,
            lambda y, layer=block.cross_attention: attend(
                layer, y, encoded, value_mask=source_mask
            ),
        )
        x = feed(config, block, x)
    return project(model, config, final_norm(model, "decoder_norm", x))


def embed(model, config, which, ids):
    """Scaled embeddings with their positions, `[B, L, d]`."""
    table = array(getattr(model.embeddings, which).embeddings)
    scale = config["hidden_dim"] ** 0.5 if config["embedding_scale"] else 1.0
    x = table[ids] * scale
    if config["positions"] is None:
        return x + sinusoids(ids.shape[1], config["hidden_dim"])
    learned = array(model.embeddings.positions.embedding.embeddings)
    positions = [learned[min(p, len(learned) - 1)] for p in range(ids.shape[1])]
    positions = np.broadcast_to(positions, (len(ids), *np.shape(positions)))
    return np.concatenate([x, positions], axis=-1)


def sinusoids(length, width):
    """`[sin(angle(p, .)), cos(angle(p, .))]`, `angle(p, m) = p / 10000^(2m/(d-2))`."""
    table = np.zeros((length, width))
    for p, m in np.ndindex(length, width // 2):
        angle = p / 10000 ** (2 * m / (width - 2))
        table[p, m], table[p, width // 2 + m] = np.sin(angle), np.cos(angle)
    return table


def sublayer(config, residual, x, function):
    """`x + f(norm(x))` or `norm(x + f(x))`; nothing at all without the sub-layer."""
    if residual is None:
        return x
    if residual.norm is None:
        return x + function(x)
    if config["normalization"] == "pre":
        return x + function(norm(residual.norm, x))
    return norm(residual.norm, x + function(x))


def feed(config, block, x):
    layer = block.feed_forward

    def function(y):
        first, second = layer.intermediate_dense, layer.output_dense
        hidden = np.maximum(y @ array(first.kernel) + array(first.bias), 0.0)
        return hidden @ array(second.kernel) + array(second.bias)

    return sublayer(config, block.feed_forward_residual, x, function)


def attend(layer, query, value, **masks):
    reference = REFERENCES[type(layer).__name__]
    config, weights = layer.get_config(), layer_weights(layer)
    return reference(config, weights, query, value, **masks)[0]


def final_norm(model, name, x):
    layer = getattr(model, name)
    return x if layer is None else norm(layer, x)


def norm(layer, x):
    deviation = np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    centred = (x - x.mean(-1, keepdims=True)) / deviation
    return centred * array(layer.gamma) + array(layer.beta)


def project(model, config, x):
    """Logits: with the target embeddings if they are tied, else with a matrix."""
    embeddings = model.embeddings
    if config["tie_embeddings"] == "none":
        matrix, bias = embeddings.output_dense.kernel, embeddings.output_dense.bias
        result = x @ array(matrix)
    else:
        result, bias = x @ array(embeddings.target.embeddings).T, embeddings.bias
    return result + (array(bias) if config["softmax_bias"] else 0.0)


def array(weight) -> np.ndarray:
    return ops.convert_to_numpy(weight).astype("float64")
