"""Hybrids of a baseline from what each of its layers may get."""

from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

from keras_attnvariants.models.templates import per_layer
from keras_attnvariants.presets import Preset
from keras_attnvariants.tuning.attention import NONE
from keras_attnvariants.tuning.attention import PLACES
from keras_attnvariants.tuning.attention import configuration
from keras_attnvariants.tuning.layer_locality import HARD_CODED
from keras_attnvariants.tuning.layer_locality import LEARNED
from keras_attnvariants.tuning.layer_locality import LOCAL
from keras_attnvariants.tuning.layer_locality import NGRAM
from keras_attnvariants.tuning.layer_locality import RUNGS
from keras_attnvariants.tuning.layer_locality import LayerLocality

# What is replaced.
REPLACED = "DotProductAttention"


def rungs(
    preset: Preset,
    place: str,
    entry: Mapping[str, Any],
    layer: LayerLocality,
    lowest: str,
    distance: int,
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """What a layer may get, from the cheapest to what it has.

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
    for rung in RUNGS[RUNGS.index(lowest) : -1]:
        if rung in variants:
            name, options = variants[rung]
            options = {"num_heads": entry["config"]["num_heads"], **options}
            found = configuration(name, options, {}, preset)
            if found is not None:
                yield rung, found
    yield LEARNED, entry


def hybrids(
    preset: Preset, proposed: Mapping[tuple[str, int], Mapping[str, Any]]
) -> dict[str, dict[str, Any]]:
    """By name, the attention of each hybrid, cheapest first; last, the baseline.

    A hybrid is named after what no layer of it is cheaper than.

    Args:
        preset: the baseline.
        proposed: by place and layer, what it may get by rung.
    """
    found: dict[str, dict[str, Any]] = {}
    for floor in reversed(RUNGS):
        chosen = {
            where: next(ladder[r] for r in RUNGS[RUNGS.index(floor) :] if r in ladder)
            for where, ladder in proposed.items()
        }
        arguments = with_layers(preset, chosen)
        if arguments not in found.values():
            found[floor] = arguments
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
