"""Hybrids of a baseline: cheaper attention for layers whose heads look near."""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import NamedTuple

import numpy as np

from keras_attnvariants.analysis.heads import NEAREST
from keras_attnvariants.analysis.heads import HeadLocality
from keras_attnvariants.models.templates import per_layer
from keras_attnvariants.presets import Preset
from keras_attnvariants.tuning.candidates import NONE
from keras_attnvariants.tuning.candidates import PLACES
from keras_attnvariants.tuning.candidates import configuration

# Kinds of attention of a layer, from cheapest to most expensive. A hybrid is named
# after the cheapest kind that its layers may have.
HARD_CODED, NGRAM, LOCAL, LEARNED = KINDS = (
    "hard-coded",
    "n-gram",
    "local",
    "learned",
)
# The variant that is replaced.
REPLACED = "DotProductAttention"
# Share of the rows in which a head must keep to its offset to be hard-coded.
MOST = 0.5


class LayerLocality(NamedTuple):
    """Locality of the heads of a layer.

    Attributes:
        near, wide: share of the weight within the distance, and within twice of it.
        even_near, even_wide: the same if all weights of a row were equal.
        offsets: the most frequent offset of each head, from -3 to 3.
        kept: the smallest, over the heads, share of rows whose largest weight is at
            most one token from that.
    """

    near: float
    wide: float
    even_near: float
    even_wide: float
    offsets: tuple[int, ...]
    kept: float

    def replacement(self, place: str, nearness: float) -> str:
        """The cheapest kind of attention for the layer.

        Args:
            place: `"encoder"`, `"decoder"` or `"cross"`.
            nearness: how near it must look, from 0 (even weights) to 1 (nothing
                beyond the distance).
        """
        is_near = beyond_even(self.near, self.even_near) >= nearness
        if is_near and self.kept >= MOST:
            return HARD_CODED
        if place == "cross":
            return LEARNED
        if is_near:
            return NGRAM
        is_wide = beyond_even(self.wide, self.even_wide) >= nearness
        return LOCAL if is_wide else LEARNED


def beyond_even(share: float, even: float) -> float:
    """A share on a scale from that of even weights, 0, to everything, 1."""
    return (share - even) / (1 - even) if even < 1 else 0.0


def layer_locality(
    heads: Sequence[HeadLocality],
    weights: Mapping[int, float],
    even: tuple[float, float],
) -> LayerLocality:
    """The locality of a layer, from the tables of `kav.analysis`.

    Args:
        heads: its heads.
        weights: its weight by distance, up to twice of what counts as near.
        even: shares of even weights within the distance, and within twice of it.
    """
    distance = max(weights) // 2
    shares = [dict(zip(NEAREST, head.shares, strict=True)) for head in heads]
    offsets = tuple(max(found, key=found.__getitem__) for found in shares)
    kept = [
        sum(found.get(offset + step, 0.0) for step in (-1, 0, 1))
        for offset, found in zip(offsets, shares, strict=True)
    ]
    near = sum(weight for far, weight in weights.items() if abs(far) <= distance)
    wide = sum(weights.values())
    return LayerLocality(near, wide, even[0], even[1], offsets, min(kept))


def even_share(place: str, lengths: Iterable[tuple[int, int]], distance: int) -> float:
    """Share of the weight within a distance if all weights of a row are equal.

    Args:
        place: `"encoder"`, `"decoder"` or `"cross"`.
        lengths: of sources and targets, in tokens; a target has BOS before it.
        distance: in tokens.
    """
    near = rows = 0.0
    for source, target in lengths:
        queries = source if place == "encoder" else target + 1
        keys = target + 1 if place == "decoder" else source
        offsets = np.arange(keys) - np.arange(queries)[:, None]
        seen = offsets <= 0 if place == "decoder" else np.full(offsets.shape, True)
        within = (abs(offsets) <= distance) & seen
        near += (within.sum(-1) / seen.sum(-1)).sum()
        rows += queries
    return near / rows


def replacements(
    preset: Preset,
    place: str,
    entry: Mapping[str, Any],
    layer: LayerLocality,
    lowest: str,
    distance: int,
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The attention that may stand in a layer, from the cheapest to its own.

    Args:
        preset: the baseline.
        place: of the layer.
        entry: its attention, in serialized form.
        layer: where its heads look.
        lowest: the cheapest that it may get.
        distance: what counts as near, in tokens.
    """
    reach = (2 * distance if lowest == LOCAL else distance) + 1
    variants: dict[str, tuple[str, dict[str, Any]]] = {
        HARD_CODED: ("HardCodedAttention", {"offsets": list(layer.offsets)}),
        NGRAM: (
            "NeuralNgram",
            {
                "n": reach,
                "causal": place == "decoder",
                "global_context": False,
                "output_projection": False,
            },
        ),
        LOCAL: ("LocalAttention", {"n": reach}),
    }
    if place == "cross":
        # The offsets were counted from the start of both sentences.
        options = {"offsets": list(layer.offsets), "length_ratio": 1.0}
        variants = {HARD_CODED: ("HardCodedCrossAttention", options)}
    for kind in KINDS[KINDS.index(lowest) : -1]:
        if kind in variants:
            name, options = variants[kind]
            options = {"num_heads": entry["config"]["num_heads"], **options}
            found = configuration(name, options, {}, preset)
            if found is not None:
                yield kind, found
    yield LEARNED, entry


def hybrids(
    preset: Preset, proposed: Mapping[tuple[str, int], Mapping[str, Any]]
) -> dict[str, dict[str, Any]]:
    """By name, the attention of each hybrid, cheapest first; last, the baseline.

    Args:
        preset: the baseline.
        proposed: by place and layer, its possible attention by kind.
    """
    found: dict[str, dict[str, Any]] = {}
    for cheapest in reversed(KINDS):
        chosen = {
            where: next(kinds[k] for k in KINDS[KINDS.index(cheapest) :] if k in kinds)
            for where, kinds in proposed.items()
        }
        arguments = with_layers(preset, chosen)
        if arguments not in found.values():
            found[cheapest] = arguments
    return dict(reversed(found.items()))


def learned_layers(preset: Preset) -> dict[tuple[str, int], dict[str, Any]]:
    """The learned attention of a preset by place and number of the layer.

    Raises:
        ValueError: there is none.
    """
    layers = {
        (place, number): entry
        for place, entries in stacks(preset.config).items()
        for number, entry in enumerate(entries, start=1)
        if entry and class_of(entry) == REPLACED
    }
    if not layers:
        raise ValueError(
            f"The baseline must have learned attention ({REPLACED}). "
            f"Received: {preset.name}"
        )
    return layers


def stacks(config: Mapping[str, Any]) -> dict[str, list[Any]]:
    """The attention of each place, one entry for each layer.

    Args:
        config: arguments of a model; one without layers has no such places.
    """
    if "num_layers" not in config:
        return {}
    encoder = config["num_layers"]
    depths = dict.fromkeys(PLACES, config.get("num_decoder_layers") or encoder)
    depths["encoder"] = encoder
    return {
        place: per_layer(name, config.get(name), depths[place])
        for place, name in PLACES.items()
    }


def classes(layers: Mapping[str, list[Any]]) -> dict[str, list[str]]:
    """The names of the variants in each place."""
    return {
        place: [class_of(entry) if entry else NONE for entry in entries]
        for place, entries in layers.items()
    }


def with_layers(
    preset: Preset, chosen: Mapping[tuple[str, int], Mapping[str, Any]]
) -> dict[str, Any]:
    """Arguments of the model in which some layers have other attention."""
    changed = {}
    for place, entries in stacks(preset.config).items():
        layers = [
            chosen.get((place, number), entry)
            for number, entry in enumerate(entries, start=1)
        ]
        if layers != entries:
            changed[PLACES[place]] = layers
    return changed


def class_of(entry: Mapping[str, Any]) -> str:
    """The name of a variant in serialized form."""
    return str(entry["class_name"]).rpartition(">")[2]
