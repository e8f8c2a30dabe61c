"""A Transformer as CTranslate2 describes one, from its weights by name.

This module needs CTranslate2 and NumPy only.
"""

from collections.abc import Mapping
from typing import Any
from typing import TypeAlias

import numpy as np
from ctranslate2.specs import TransformerSpec
from ctranslate2.specs.common_spec import Activation

# Float32 arrays by name.
Weights: TypeAlias = Mapping[str, np.ndarray]

# Keras' names of the activations that both have.
ACTIVATIONS = {
    "relu": Activation.RELU,
    "gelu": Activation.GELU,
    "silu": Activation.SWISH,
    "sigmoid": Activation.Sigmoid,
    "tanh": Activation.Tanh,
}


def transformer_spec(
    weights: Weights,
    num_layers: tuple[int, int],
    num_heads: int,
    source: list[str],
    target: list[str],
    *,
    pre_norm: bool = False,
    activation: str = "relu",
    scale: float = 1.0,
) -> Any:
    """A Transformer with learned attention in all places, for CTranslate2.

    Args:
        weights: float32 arrays by the paths of layers in the model and their own names,
            such as `"encoder_0/self_attention/query/kernel"`, and the table of
            `positions`, `[length, width]`. One of the embeddings, `"source"` or
            `"target"`, may be missing if both are the same, and so may `"output"`.
        num_layers: numbers of encoder and decoder blocks.
        num_heads: number of heads of every layer.
        source, target: words of the vocabularies.
        pre_norm: whether normalisation precedes layers instead of following them.
        activation: one of `ACTIVATIONS`.
        scale: factor of the embeddings.

    Raises:
        ValueError: a vocabulary has another size than the embeddings.
    """
    spec = TransformerSpec.from_config(
        num_layers, num_heads, pre_norm=pre_norm, activation=ACTIVATIONS[activation]
    )
    target_table = weights["embeddings/target/embeddings"]
    tables = weights.get("embeddings/source/embeddings", target_table)
    spec.encoder.embeddings[0].weight = tables
    spec.decoder.embeddings.weight = target_table
    for kind, side in (("encoder", spec.encoder), ("decoder", spec.decoder)):
        side.position_encodings.encodings = weights["positions"]
        side.scale_embeddings = scale
        for number, block in enumerate(side.layer):
            fill_block(block, weights, f"{kind}_{number}")
        if pre_norm:
            fill_norm(side.layer_norm, weights, f"{kind}_norm")
    output = weights.get("embeddings/output/kernel")
    projection = spec.decoder.projection
    projection.weight = target_table if output is None else transposed(output)
    for name in ("embeddings/bias", "embeddings/output/bias"):
        if name in weights:
            projection.bias = weights[name]
    spec.register_source_vocabulary(source)
    spec.register_target_vocabulary(target)
    return spec


def fill_block(spec: Any, weights: Weights, block: str) -> None:
    """Fills an encoder or a decoder block."""
    attention, place = spec.self_attention, f"{block}/self_attention"
    fill_linear(attention.linear[0], weights, place, "query", "key", "value")
    fill_linear(attention.linear[1], weights, place, "output")
    fill_norm(attention.layer_norm, weights, f"{block}/self_residual/norm")
    if hasattr(spec, "attention"):
        attention, place = spec.attention, f"{block}/cross_attention"
        fill_linear(attention.linear[0], weights, place, "query")
        fill_linear(attention.linear[1], weights, place, "key", "value")
        fill_linear(attention.linear[2], weights, place, "output")
        fill_norm(attention.layer_norm, weights, f"{block}/cross_residual/norm")
    fill_linear(spec.ffn.linear_0, weights, f"{block}/feed_forward", "intermediate")
    fill_linear(spec.ffn.linear_1, weights, f"{block}/feed_forward", "output")
    fill_norm(spec.ffn.layer_norm, weights, f"{block}/ff_residual/norm")


def fill_linear(spec: Any, weights: Weights, place: str, *names: str) -> None:
    """Fills one dense layer with several, side by side."""
    kernels = [transposed(weights[f"{place}/{name}/kernel"]) for name in names]
    spec.weight = np.concatenate(kernels)
    if f"{place}/{names[0]}/bias" in weights:
        spec.bias = np.concatenate([weights[f"{place}/{name}/bias"] for name in names])


def fill_norm(spec: Any, weights: Weights, place: str) -> None:
    """Fills a normalisation."""
    spec.gamma, spec.beta = weights[f"{place}/gamma"], weights[f"{place}/beta"]


def transposed(kernel: np.ndarray) -> np.ndarray:
    """A kernel `[inputs, outputs]` as CTranslate2 stores it, `[outputs, inputs]`."""
    return np.ascontiguousarray(kernel.T)
