"""Proposes hybrids, based on where the heads of a trained baseline attend.

Layers whose heads attend to near tokens get a cheaper kind of attention: hard-coded
attention if every head keeps to one offset, n-grams if the weight lies within a
window, local attention if the window must be twice as wide. The others stay learned.
"""

import dataclasses
import os
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any
from typing import NamedTuple

from keras_attnvariants import presets
from keras_attnvariants.analysis import Table
from keras_attnvariants.analysis import locality
from keras_attnvariants.analysis import read_pairs
from keras_attnvariants.analysis import weight_by_distance
from keras_attnvariants.data import Corpus
from keras_attnvariants.presets import Preset
from keras_attnvariants.training import load_run
from keras_attnvariants.training.fine_tuning import NOT_ARCHITECTURE
from keras_attnvariants.training.run_settings import read_settings
from keras_attnvariants.training.training_config import describe_data
from keras_attnvariants.tuning.hybrids import LOCAL
from keras_attnvariants.tuning.hybrids import cheapest
from keras_attnvariants.tuning.hybrids import hybrids
from keras_attnvariants.tuning.hybrids import kept_offsets
from keras_attnvariants.tuning.hybrids import learned_layers
from keras_attnvariants.tuning.hybrids import nearness_of
from keras_attnvariants.tuning.hybrids import replacements
from keras_attnvariants.tuning.hybrids import shares_within
from keras_attnvariants.tuning.hybrids import variant_of
from keras_attnvariants.tuning.hybrids import with_layers
from keras_attnvariants.tuning.space import SearchSpace
from keras_attnvariants.utils.checks import check_integer
from keras_attnvariants.utils.checks import check_share
from keras_attnvariants.utils.records import grouped

DISTANCE = 2
NEARNESS = 0.25
SENTENCES = 1000
# The dimension of the space.
DIMENSION = "hybrid"
# Settings that differ if another corpus is given.
CONTENTS = ("train_sentences", "validation_sentences", "alignments")


class ProposedLayer(NamedTuple):
    """The proposal for a layer.

    Attributes:
        place, layer: the layer; numbers from 1, from the bottom.
        near: share of its weight within the distance that counts as near.
        even: the share if all weights of a row were equal.
        offsets: the most frequent offset of each head, in tokens.
        proposed: the cheapest kind that its heads allow.
        variant: the class of the proposed attention.
        saved: how many parameters fewer it needs than learned attention.
    """

    place: str
    layer: int
    near: float
    even: float
    offsets: str
    proposed: str
    variant: str
    saved: int


@dataclass(frozen=True)
class Proposal(Table):
    """Hybrids of a baseline, and the measurements behind them.

    Attributes:
        title, rows, sentences, skipped, drawings: as in `kav.analysis.Table`; a row is
            a layer with learned attention.
        preset: the baseline.
        hybrids: the attention of each by name; the last is the baseline.
    """

    preset: Preset = dataclasses.field(kw_only=True)
    hybrids: Mapping[str, Mapping[str, Any]] = dataclasses.field(kw_only=True)

    @property
    def space(self) -> SearchSpace:
        """The space whose points are the hybrids and the baseline."""
        return SearchSpace(systems={DIMENSION: self.hybrids})


def propose_hybrids(
    run: str | os.PathLike[str],
    corpus: Corpus,
    *,
    distance: int = DISTANCE,
    nearness: float = NEARNESS,
    sentences: int = SENTENCES,
) -> Proposal:
    """Proposes hybrids, based on where heads of a run attend in validation sentences.

    Args:
        run: folder of a run of a preset with learned attention.
        corpus: the corpus of the run.
        distance: distance up to which a token is near, in tokens.
        nearness: smallest nearness at which a layer is replaced, from 0 (even weights)
            to 1 (nothing beyond the distance).
        sentences: number of validation sentences to measure.

    Raises:
        FileNotFoundError: the folder contains no run.
        ValueError: an argument is out of range, the run does not use a preset, uses
            another corpus, or has no learned attention.

    Example:

    ```python
    proposal = kav.tuning.propose_hybrids("runs/base", corpus)
    print(proposal)
    search = kav.tuning.search(
        proposal.preset, corpus, proposal.space, "runs/hybrids", budget=budget
    )
    print(kav.tuning.judge(search.run()))
    ```
    """
    check_integer("sentences", sentences)
    run = Path(run)
    model, tokenizer = load_run(run)
    preset = preset_of_run(run, model, corpus)
    pairs = list(islice(read_pairs(corpus, "validation"), sentences))
    return propose(model, tokenizer, pairs, preset, distance, nearness)


def propose(
    model: Any,
    tokenizer: Any,
    pairs: Sequence[tuple[str, str]],
    preset: Preset,
    distance: int = DISTANCE,
    nearness: float = NEARNESS,
) -> Proposal:
    """Proposes hybrids of a preset, based on where the heads of a model attend.

    Args:
        model: a model with the layers of the preset and a method `attention_scores`.
        tokenizer: its tokenizer.
        pairs: sentences and their translations.
        preset: the baseline.
        distance, nearness: as for `propose_hybrids`.

    Raises:
        ValueError: an argument is out of range, or the preset has no learned attention.
    """
    check_integer("distance", distance)
    check_share("nearness", nearness)
    baseline = learned_layers(preset)
    heads = locality(model, tokenizer, pairs)
    weights = weight_by_distance(model, tokenizer, pairs, farthest=2 * distance)
    by_layer = grouped(weights.rows, "place", "layer")
    rows, proposed = [], {}
    for where, of_layer in grouped(heads.rows, "place", "layer").items():
        if where not in baseline:
            continue
        place, number = where
        near, wide = (
            shares_within(far, by_layer[where]) for far in (distance, 2 * distance)
        )
        is_near, is_wide = (nearness_of(*each) >= nearness for each in (near, wide))
        offsets, kept = kept_offsets(of_layer)
        kind = cheapest(place, is_near, is_wide, kept)
        reach = (2 * distance if kind == LOCAL else distance) + 1
        found = replacements(preset, place, baseline[where], kind, offsets, reach)
        proposed[where] = found
        changed = with_layers(preset, {where: found[kind]})
        rows.append(
            ProposedLayer(
                place,
                number,
                *near,
                offsets=" ".join(f"{n:+d}" if n else "0" for n in offsets),
                proposed=kind,
                variant=variant_of(found[kind]),
                saved=preset.count() - preset.count(**changed),
            )
        )
    return Proposal(
        "Possible replacements of learned attention",
        tuple(rows),
        heads.sentences,
        heads.skipped,
        preset=preset,
        hybrids=hybrids(preset, proposed),
    )


def preset_of_run(run: Path, model: Any, corpus: Corpus) -> Preset:
    """The preset of a run, with all arguments of the run's model as its options.

    Raises:
        ValueError: the run does not use a preset, or uses another corpus.
    """
    data = read_settings(run).get("training", {}).get("data", {})
    if "preset" not in data:
        raise ValueError(f"The run must be one of a preset. Received: {run}")
    preset = presets.get(data["preset"])
    given = describe_data(preset, corpus, {})
    if any(data.get(name) != given.get(name) for name in CONTENTS):
        raise ValueError(
            f"{run} is a run on another corpus: give that. Received: {corpus.name!r}"
        )
    options = {k: v for k, v in model.get_config().items() if k not in NOT_ARCHITECTURE}
    return dataclasses.replace(preset, architecture=dict, options=options)
