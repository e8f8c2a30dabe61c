"""Pieces that the configurations of several papers are made of."""

from typing import Any

# The sizes of the first Transformer's base model.
BASE = {
    "num_layers": 6,
    "hidden_dim": 512,
    "intermediate_dim": 2048,
    "num_heads": 8,
}


def layer(class_name: str, **config: Any) -> dict[str, Any]:
    """An object of this package, as Keras serializes it."""
    return {"class_name": f"keras_attnvariants>{class_name}", "config": config}


def learned(num_heads: int, **options: Any) -> dict[str, Any]:
    """Learned dot-product attention."""
    return layer("DotProductAttention", num_heads=num_heads, **options)
