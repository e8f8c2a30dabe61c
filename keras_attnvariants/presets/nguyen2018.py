"""Nguyen and Joty 2018: phrase-based attention.

Every attention layer of the Transformer, cross-attention included, attends to n-grams.
Settings that the paper leaves open are those of the library that it used:
pre-normalization, no biases in attention, dropout inside attention and feed-forward
sub-layers.
"""

from collections.abc import Callable
from collections.abc import Mapping
from functools import partial
from typing import Any

from keras_attnvariants.presets.papers import register_paper
from keras_attnvariants.presets.preset import PLACES
from keras_attnvariants.presets.preset import layer_config
from keras_attnvariants.presets.preset import learned_attention

# Structures, by place and number of heads.


def homogeneous(place: str, num_heads: int, shares: tuple[int, ...]) -> dict[str, Any]:
    """Separate heads for unigrams, bigrams, …, in these proportions."""
    heads = [num_heads * share // sum(shares) for share in shares]
    if sum(heads) != num_heads:
        raise ValueError(
            f"`num_heads` must be divisible in the proportions of {shares}. "
            f"Received: {num_heads}"
        )
    return layer_config("Homogeneous", heads=heads)


def heterogeneous(place: str, num_heads: int, longest: int) -> dict[str, Any]:
    """N-grams of all orders up to the longest in every head."""
    return layer_config("Heterogeneous", orders=list(range(1, longest + 1)))


def interleaved(place: str, num_heads: int) -> dict[str, Any]:
    """Queries of tokens and queries of phrases; in encoders phrases look ahead."""
    return layer_config("Interleaved", look_ahead=place == "encoder_attention")


def architecture(
    structure: Callable[[str, int], dict[str, Any]] | None,
    scoring: str | None,
    num_heads: int,
    attention: Mapping[str, Any] | None = None,
    **sizes: Any,
) -> dict[str, Any]:
    """The arguments of `Transformer`, in the form of its `get_config`.

    Args:
        structure: returns the structure for a place and a number of heads; `None` for
            learned dot-product attention.
        scoring: `"conv_kv"` or `"query_k"`; `None` if `structure` is.
        num_heads: number of heads per attention layer.
        attention: further arguments of all attention layers.
        **sizes: further arguments, passed on unchanged.
    """
    options = {"num_heads": num_heads, **(attention or {})}

    def sublayer(place: str) -> dict[str, Any]:
        if structure is None:
            return learned_attention(**options)
        return layer_config(
            "PhraseAttention",
            structure=structure(place, num_heads),
            scoring=scoring,
            **options,
        )

    return {**sizes, **{place: sublayer(place) for place in PLACES}}


# Structures by the names of their models, in which `{}` stands for the scoring.
STRUCTURES: dict[str, Callable[[str, int], dict[str, Any]]] = {
    "homogeneous-{}-44": partial(homogeneous, shares=(4, 4)),
    "homogeneous-{}-323": partial(homogeneous, shares=(3, 2, 3)),
    "heterogeneous-{}-12": partial(heterogeneous, longest=2),
    "{}-12-depth-4": partial(heterogeneous, longest=2),
    "heterogeneous-{}-123": partial(heterogeneous, longest=3),
    "heterogeneous-{}-1234": partial(heterogeneous, longest=4),
    "interleaved-{}": interleaved,
}

ARCHITECTURES = {
    structure.format(scoring.replace("_", "-")): partial(architecture, make, scoring)
    for structure, make in STRUCTURES.items()
    for scoring in ("conv_kv", "query_k")
} | dict.fromkeys(("base", "big", "base-depth-10"), partial(architecture, None, None))

register_paper("nguyen2018", ARCHITECTURES.__getitem__)
