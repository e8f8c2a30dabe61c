"""Parts of configurations that several papers share."""

from typing import Any

# Sizes of the base Transformer of Vaswani et al. 2017.
BASE = {
    "num_layers": 6,
    "hidden_dim": 512,
    "intermediate_dim": 2048,
    "num_heads": 8,
}


def layer_config(class_name: str, **config: Any) -> dict[str, Any]:
    """An object of this package in the form that Keras serializes it to."""
    return {"class_name": f"keras_attnvariants>{class_name}", "config": config}


def learned_attention(num_heads: int, **options: Any) -> dict[str, Any]:
    """Learned dot-product attention in serialized form."""
    return layer_config("DotProductAttention", num_heads=num_heads, **options)
