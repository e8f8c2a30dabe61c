"""Rosendahl, Herold, Petrick and Ney 2021: recurrent cross-attention.

A Transformer with one of nine recurrences in every cross-attention. Settings that the
paper leaves open are those of a later public configuration of the same group for
Romanian: pre-normalization, no biases in attention, a bias in the output projection,
dropout inside attention and feed-forward sub-layers, initializers of attention,
settings of Adam, beam size and vocabulary.
"""

from collections.abc import Callable
from collections.abc import Mapping
from functools import partial
from typing import Any

from keras_attnvariants.presets.papers import register_paper
from keras_attnvariants.presets.preset import PLACES
from keras_attnvariants.presets.preset import layer_config
from keras_attnvariants.presets.preset import learned_attention


def architecture(
    recurrence: str | None,
    num_heads: int,
    attention: Mapping[str, Any] | None = None,
    **sizes: Any,
) -> dict[str, Any]:
    """The arguments of `Transformer`, in the form of its `get_config`.

    Args:
        recurrence: recurrence of all cross-attention; `None` for learned dot-product
            attention.
        num_heads: number of heads per attention layer.
        attention: further arguments of all attention layers.
        **sizes: further arguments, passed on unchanged.
    """
    options = {"num_heads": num_heads, **(attention or {})}
    plain = cross = learned_attention(**options)
    if recurrence is not None:
        options["recurrence"] = recurrence
        cross = layer_config("RecurrentCrossAttention", **options)
    return {**sizes, **dict.fromkeys(PLACES, plain), "cross_attention": cross}


def architecture_of(variant: str) -> Callable[..., dict[str, Any]]:
    """The architecture of the baseline, or with the recurrence of this name."""
    recurrence = None if variant == "baseline" else variant.replace("-", "_")
    return partial(architecture, recurrence)


register_paper("rosendahl2021", architecture_of)
