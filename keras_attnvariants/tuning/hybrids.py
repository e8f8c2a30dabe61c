"""Hybrids of a preset, in which other attention replaces learned attention.

A hybrid is named after the cheapest kind of attention that its layers may have.
"""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from keras_attnvariants.analysis.heads import NEAREST
from keras_attnvariants.analysis.heads import DistanceWeight
from keras_attnvariants.analysis.heads import HeadLocality
from keras_attnvariants.models.templates import per_layer
from keras_attnvariants.presets import Preset
from keras_attnvariants.tuning.dimensions import PLACES
from keras_attnvariants.tuning.dimensions import configuration

# Kinds of attention of a layer, from cheapest to most expensive.
HARD_CODED, NGRAM, LOCAL, LEARNED = KINDS = (
    "hard-coded",
    "n-gram",
    "local",
    "learned",
)
# The variant that is replaced.
REPLACED = "DotProductAttention"
# Smallest share of rows in which a hard-coded head must keep to its offset.
MIN_SHARE_KEPT = 0.5
ROUNDING = 1e-6

# Place and number of a layer, from 1 at the bottom.
Where = tuple[str, int]


def replacements(
    preset: Preset,
    place: str,
    entry: Mapping[str, Any],
    lowest: str,
    offsets: Sequence[int],
    reach: int,
) -> dict[str, Any]:
    """The possible attention of a layer by kind, cheapest first.

    Args:
        preset: the baseline.
        place: place of the layer.
        entry: its attention, in serialized form; the last kind.
        lowest: the cheapest kind that the layer may get.
        offsets: offset of each hard-coded head.
        reach: tokens of an n-gram, and of a window to one side.
    """
    ngram = {"causal": place == "decoder", "global_context": False}
    variants: dict[str, tuple[str, dict[str, Any]]] = {
        HARD_CODED: ("HardCodedAttention", {"offsets": list(offsets)}),
        NGRAM: ("NeuralNgram", {"n": reach, **ngram, "output_projection": False}),
        LOCAL: ("LocalAttention", {"n": reach}),
    }
    if place == "cross":
        # The offsets were counted from the start of both sentences.
        options = {"offsets": list(offsets), "length_ratio": 1.0}
        variants = {HARD_CODED: ("HardCodedCrossAttention", options)}
    heads = {"num_heads": entry["config"]["num_heads"]}
    found = {
        kind: configuration(name, {**heads, **options}, {}, preset)
        for kind, (name, options) in variants.items()
        if KINDS.index(kind) >= KINDS.index(lowest)
    }
    return {**found, LEARNED: entry}


def hybrids(
    preset: Preset, proposed: Mapping[Where, Mapping[str, Any]]
) -> dict[str, dict[str, Any]]:
    """The attention of each hybrid by name, cheapest first, then the baseline.

    Args:
        preset: the baseline.
        proposed: by place and layer, the possible attention by kind.
    """
    found: dict[str, dict[str, Any]] = {}
    for number, cheapest in reversed(list(enumerate(KINDS))):
        chosen = {
            where: next(kinds[kind] for kind in KINDS[number:] if kind in kinds)
            for where, kinds in proposed.items()
        }
        arguments = with_layers(preset, chosen)
        if arguments not in found.values():
            found[cheapest] = arguments
    return dict(reversed(found.items()))


def learned_layers(preset: Preset) -> dict[Where, Any]:
    """The learned attention of a preset by place and number of the layer.

    Raises:
        ValueError: there is none.
    """
    layers = layers_of(preset.config).items()
    learned = {where: entry for where, entry in layers if variant_of(entry) == REPLACED}
    if not learned:
        raise ValueError(
            f"The baseline must have learned attention ({REPLACED}). "
            f"Received: {preset.name}"
        )
    return learned


def layers_of(config: Mapping[str, Any]) -> dict[Where, Any]:
    """All attention by place and number of the layer, from the bottom of each place.

    Args:
        config: arguments of a model; a model without layers has no such places.
    """
    if "num_layers" not in config:
        return {}
    encoder = config["num_layers"]
    depths = dict.fromkeys(PLACES, config.get("num_decoder_layers") or encoder)
    depths["encoder"] = encoder
    return {
        (place, number): entry
        for place, name in PLACES.items()
        for number, entry in enumerate(
            per_layer(name, config.get(name), depths[place]), start=1
        )
    }


def with_layers(preset: Preset, chosen: Mapping[Where, Any]) -> dict[str, Any]:
    """Arguments of the model in which some layers have other attention."""
    layers = layers_of(preset.config)
    changed = {place for place, n in chosen if chosen[place, n] != layers[place, n]}
    layers.update(chosen)
    return {
        name: [entry for where, entry in layers.items() if where[0] == place]
        for place, name in PLACES.items()
        if place in changed
    }


def variant_of(entry: Mapping[str, Any] | None) -> str:
    """The name of a variant in serialized form; empty for no sub-layer."""
    return str(entry["class_name"]).rpartition(">")[2] if entry else ""


def shares_within(distance: int, rows: Iterable[DistanceWeight]) -> tuple[float, float]:
    """The share of the weight of a layer within a distance, in tokens.

    Returns:
        The share; and the same if all weights of a row were equal.
    """
    near = [row for row in rows if abs(row.distance) <= distance]
    return sum(row.weight for row in near), sum(row.even for row in near)


def nearness_of(weight: float, even: float) -> float:
    """A share on a scale from 0, the share of even weights, to 1, all the weight."""
    # In short sentences, the remaining share may be a rounding error.
    return (weight - even) / (1 - even) if 1 - even > ROUNDING else 0.0


def cheapest(place: str, is_near: bool, is_near_in_wide: bool, kept: float) -> str:
    """The cheapest kind of attention for a layer.

    Args:
        place: place of the layer.
        is_near, is_near_in_wide: whether its heads attend to near tokens, and to
            those within a window twice as wide.
        kept: see `kept_offsets`.
    """
    if is_near and kept >= MIN_SHARE_KEPT:
        return HARD_CODED
    if place == "cross":
        return LEARNED
    if is_near:
        return NGRAM
    return LOCAL if is_near_in_wide else LEARNED


def kept_offsets(heads: Sequence[HeadLocality]) -> tuple[list[int], float]:
    """The most frequent offset of each head, and how far the heads keep to them.

    Returns:
        Offsets from -3 to 3; and the share of rows whose largest weight is at most
        one token from the offset, in the head where this share is smallest.
    """
    offsets, kept = [], []
    for head in heads:
        shares = dict(zip(NEAREST, head.shares, strict=True))
        offset = max(shares, key=shares.__getitem__)
        offsets.append(offset)
        kept.append(sum(shares.get(offset + step, 0.0) for step in (-1, 0, 1)))
    return offsets, min(kept)
