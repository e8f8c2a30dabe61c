"""The Transformer written out in NumPy, float64: the reference for its flavours."""

import numpy as np
from keras import ops

from tests.reference import REFERENCES
from tests.reference import layer_weights


def logits(model, source_ids, target_ids) -> np.ndarray:
    """`[B, T, V]` from the model's configuration and weights alone."""
    return run(model, source_ids, target_ids)[0]


def attention_scores(model, source_ids, target_ids) -> dict[str, dict]:
    """Weights of every attention layer that has any, by block and sub-layer."""
    return run(model, source_ids, target_ids)[1]


def run(model, source_ids, target_ids):
    """The logits, and the weights by block and sub-layer."""
    config = model.get_config()
    scores = {
        block.name: {} for block in (*model.encoder_blocks, *model.decoder_blocks)
    }

    def attention(block, role, value=None, **masks):
        def function(y):
            layer = getattr(block, f"{role}_attention")
            output, weights = attend(layer, y, y if value is None else value, **masks)
            if layer.has_scores:
                scores[block.name][role] = weights
            return output

        return function

    source_mask = source_ids != config["pad_id"]
    x = embed(model, config, "source", source_ids)
    for block in model.encoder_blocks:
        function = attention(block, "self", value_mask=source_mask)
        x = sublayer(config, block.self_residual, x, function)
        x = feed(config, block, x)
    encoded = final_norm(model, "encoder_norm", x)
    x = embed(model, config, "target", target_ids)
    for block in model.decoder_blocks:
        function = attention(block, "self", causal=True)
        x = sublayer(config, block.self_residual, x, function)
        function = attention(block, "cross", encoded, value_mask=source_mask)
        x = sublayer(config, block.cross_residual, x, function)
        x = feed(config, block, x)
    x = final_norm(model, "decoder_norm", x)
    return project(model, config, x), scores


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
    """`x + f(norm(x))` or `norm(x + f(x))`; `x` without the sub-layer."""
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
    """The output and the weights of a layer's reference."""
    reference = REFERENCES[type(layer).__name__]
    config, weights = layer.get_config(), layer_weights(layer)
    return reference(config, weights, query, value, **masks)


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
