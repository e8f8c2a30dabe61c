"""A Transformer as CTranslate2 describes one, from its weights by name.

This module needs CTranslate2 and NumPy only.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from ctranslate2.specs import TransformerSpec
from ctranslate2.specs.common_spec import Activation

# Keras' names of the activations that both have.
ACTIVATIONS = {
    "relu": Activation.RELU,
    "gelu": Activation.GELU,
    "silu": Activation.SWISH,
    "sigmoid": Activation.Sigmoid,
    "tanh": Activation.Tanh,
}


@dataclass(frozen=True)
class TransformerWeights:
    """A Transformer with learned attention in all places.

    Attributes:
        weights: float32 arrays by the paths of layers in the model and their own names,
            such as `"encoder_0/self_attention/query/kernel"`, and the table of
            `positions`, `[length, width]`. One of the embeddings, `"source"` or
            `"target"`, may be missing if both are the same, and so may `"output"`.
        num_layers: numbers of encoder and decoder blocks.
        num_heads: number of heads of every layer.
        pre_norm: whether normalisation precedes layers instead of following them.
        activation: one of `ACTIVATIONS`.
        scale: factor of the embeddings.
    """

    weights: Mapping[str, np.ndarray]
    num_layers: tuple[int, int]
    num_heads: int
    pre_norm: bool = False
    activation: str = "relu"
    scale: float = 1.0

    def spec(self, source: list[str], target: list[str]) -> Any:
        """The model for CTranslate2, with the words of its vocabularies.

        Raises:
            ValueError: a vocabulary has another size than the embeddings.
        """
        spec = TransformerSpec.from_config(
            self.num_layers,
            self.num_heads,
            pre_norm=self.pre_norm,
            activation=ACTIVATIONS[self.activation],
        )
        target_table = self.weights["embeddings/target/embeddings"]
        tables = self.weights.get("embeddings/source/embeddings", target_table)
        spec.encoder.embeddings[0].weight = tables
        spec.decoder.embeddings.weight = target_table
        for side in (spec.encoder, spec.decoder):
            side.position_encodings.encodings = self.weights["positions"]
            side.scale_embeddings = self.scale
        for kind, side in (("encoder", spec.encoder), ("decoder", spec.decoder)):
            for number, block in enumerate(side.layer):
                self.fill_block(block, f"{kind}_{number}")
            if self.pre_norm:
                self.fill_norm(side.layer_norm, f"{kind}_norm")
        output = self.weights.get("embeddings/output/kernel")
        projection = spec.decoder.projection
        projection.weight = target_table if output is None else transposed(output)
        for name in ("embeddings/bias", "embeddings/output/bias"):
            if name in self.weights:
                projection.bias = self.weights[name]
        spec.register_source_vocabulary(source)
        spec.register_target_vocabulary(target)
        return spec

    def fill_block(self, spec: Any, block: str) -> None:
        """Fills an encoder or a decoder block."""
        attention, place = spec.self_attention, f"{block}/self_attention"
        self.fill_linear(attention.linear[0], place, "query", "key", "value")
        self.fill_linear(attention.linear[1], place, "output")
        self.fill_norm(attention.layer_norm, f"{block}/self_residual/norm")
        if hasattr(spec, "attention"):
            attention, place = spec.attention, f"{block}/cross_attention"
            self.fill_linear(attention.linear[0], place, "query")
            self.fill_linear(attention.linear[1], place, "key", "value")
            self.fill_linear(attention.linear[2], place, "output")
            self.fill_norm(attention.layer_norm, f"{block}/cross_residual/norm")
        self.fill_linear(spec.ffn.linear_0, f"{block}/feed_forward", "intermediate")
        self.fill_linear(spec.ffn.linear_1, f"{block}/feed_forward", "output")
        self.fill_norm(spec.ffn.layer_norm, f"{block}/ff_residual/norm")

    def fill_linear(self, spec: Any, place: str, *names: str) -> None:
        """Fills one dense layer with several, side by side."""
        kernels = [transposed(self.weights[f"{place}/{name}/kernel"]) for name in names]
        spec.weight = np.concatenate(kernels)
        if f"{place}/{names[0]}/bias" in self.weights:
            biases = [self.weights[f"{place}/{name}/bias"] for name in names]
            spec.bias = np.concatenate(biases)

    def fill_norm(self, spec: Any, place: str) -> None:
        """Fills a normalisation."""
        spec.gamma = self.weights[f"{place}/gamma"]
        spec.beta = self.weights[f"{place}/beta"]


def transposed(kernel: np.ndarray) -> np.ndarray:
    """A kernel `[inputs, outputs]` as CTranslate2 stores it, `[outputs, inputs]`."""
    return np.ascontiguousarray(kernel.T)
