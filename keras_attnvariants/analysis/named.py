"""The analyses by the names that commands and files have for them."""

from collections.abc import Callable
from collections.abc import Iterator
from typing import Any

from keras_attnvariants.analysis.alignments import alignment_errors
from keras_attnvariants.analysis.contrastive import agreement_by_distance
from keras_attnvariants.analysis.contrastive import contrastive_accuracy
from keras_attnvariants.analysis.diagonals import off_diagonality
from keras_attnvariants.analysis.heads import entropy
from keras_attnvariants.analysis.heads import locality
from keras_attnvariants.analysis.heads import weight_by_distance
from keras_attnvariants.analysis.quadrants import activation_shares
from keras_attnvariants.analysis.quadrants import quadrant_maps
from keras_attnvariants.analysis.tables import Table


def maps_of_first(model: Any, tokenizer: Any, pairs: Iterator[Any]) -> Table:
    """The heat maps of the first sentence."""
    source, target = next(pairs)
    return quadrant_maps(model, tokenizer, source, target)


# Functions of a model, its tokenizer and data.
SINGLE: dict[str, Callable[..., Table]] = {
    "locality": locality,
    "distance": weight_by_distance,
    "entropy": entropy,
    "off-diagonality": off_diagonality,
    "activation-shares": activation_shares,
    "heat-maps": maps_of_first,
    "alignment-errors": alignment_errors,
    "contrastive": contrastive_accuracy,
    "agreement": agreement_by_distance,
}

# Those of several systems and their translations.
COMPARISONS = ("bleu-by-length", "bleu-by-off-diagonality")

ANALYSES = (*SINGLE, *COMPARISONS)
