"""Chen, Ling and Rivera 2019: two LSTM models and two small Transformers.

The paper is a course report. The LSTM models and the data follow the released code. For
the Transformers, the report gives depth, heads, width and dropout; the notes of the
presets say which settings it leaves open. Sizes, training and scores are in
`cs287.toml`.
"""

from collections.abc import Callable
from typing import Any

from keras_attnvariants.presets.papers import register_paper
from keras_attnvariants.presets.preset import PLACES
from keras_attnvariants.presets.preset import layer_config


def transformer(
    num_heads: int, hidden_dim: int, position_dim: int, dropout: float, **options: Any
) -> dict[str, Any]:
    """The arguments of `Transformer`, in the form of its `get_config`.

    Args:
        num_heads: number of heads per attention layer; need not divide the width.
        hidden_dim: width of the model.
        position_dim: width of the position embeddings, which is part of `hidden_dim`.
        dropout: rate, also for attention weights.
        **options: further arguments, passed on unchanged.
    """
    attention = layer_config(
        "DotProductAttention",
        num_heads=num_heads,
        key_dim=-(-hidden_dim // num_heads),
        dropout=dropout,
        use_bias=True,
    )
    return {
        **options,
        "hidden_dim": hidden_dim,
        "dropout": dropout,
        **dict.fromkeys(PLACES, attention),
        "positions": layer_config(
            "ConcatenatedPositions", position_dim=position_dim, max_position=20
        ),
        "embedding_scale": False,
        "normalization": "pre",
        "tie_embeddings": "none",
        "softmax_bias": True,
    }


def architecture_of(model: str) -> Callable[..., dict[str, Any]]:
    """The architecture of a model; the arguments of an LSTM model are its options."""
    return dict if model.startswith("seq2seq") else transformer


register_paper("cs287", architecture_of)
