"""Analyses of heads and of translations, as tables and pictures.

`ANALYSES` maps the names in commands and files to them. `analyses.toml` contains the
findings of the papers, and our choices where they leave something open.
"""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import NamedTuple

from keras_attnvariants.analysis.alignments import AlignedPair as AlignedPair
from keras_attnvariants.analysis.alignments import alignment_errors as alignment_errors
from keras_attnvariants.analysis.alignments import read_alignments as read_alignments
from keras_attnvariants.analysis.bleu_by_bin import bleu_by_length as bleu_by_length
from keras_attnvariants.analysis.bleu_by_bin import (
    bleu_by_off_diagonality as bleu_by_off_diagonality,
)
from keras_attnvariants.analysis.contrastive import (
    agreement_by_distance as agreement_by_distance,
)
from keras_attnvariants.analysis.contrastive import (
    contrastive_accuracy as contrastive_accuracy,
)
from keras_attnvariants.analysis.contrastive_files import (
    ContrastivePair as ContrastivePair,
)
from keras_attnvariants.analysis.contrastive_files import (
    read_contrastive as read_contrastive,
)
from keras_attnvariants.analysis.heads import entropy as entropy
from keras_attnvariants.analysis.heads import locality as locality
from keras_attnvariants.analysis.heads import off_diagonality as off_diagonality
from keras_attnvariants.analysis.heads import weight_by_distance as weight_by_distance
from keras_attnvariants.analysis.quadrants import QuadrantMaps as QuadrantMaps
from keras_attnvariants.analysis.quadrants import activation_shares as activation_shares
from keras_attnvariants.analysis.quadrants import quadrant_maps as quadrant_maps
from keras_attnvariants.analysis.streams import read_pairs as read_pairs
from keras_attnvariants.analysis.tables import TEXTS
from keras_attnvariants.analysis.tables import Table as Table


class Analysis(NamedTuple):
    """An analysis, and the published result that is shown beside ours.

    Attributes:
        function: takes a model, its tokenizer and data. Those in `COMPARISONS` also
            take translation functions, by name of the system, before the data.
        title: title of its table.
        source: where the paper shows it.
        finding: finding of the paper.
        definition: our choice where the paper leaves something open.
        drawings: `Table.drawings`, as arguments of `Drawing`.
        data: what it needs instead of a corpus, as the files of comparisons name it:
            `"alignments"` or `"contrastive"` pairs.
    """

    function: Callable[..., Table]
    title: str
    source: str
    finding: str
    definition: str
    drawings: Sequence[Mapping[str, Any]] = ()
    data: str = ""


def maps_of_first(model: Any, tokenizer: Any, pairs: Iterator[Any]) -> QuadrantMaps:
    """The heat maps of the first sentence."""
    return quadrant_maps(model, tokenizer, *next(pairs))


FUNCTIONS: dict[str, Callable[..., Table]] = {
    "locality": locality,
    "distance": weight_by_distance,
    "entropy": entropy,
    "off-diagonality": off_diagonality,
    "activation-shares": activation_shares,
    "heat-maps": maps_of_first,
    "alignment-errors": alignment_errors,
    "contrastive": contrastive_accuracy,
    "agreement": agreement_by_distance,
    # It needs no model.
    "bleu-by-length": lambda model, tokenizer, *rest, **options: bleu_by_length(
        *rest, **options
    ),
    "bleu-by-off-diagonality": bleu_by_off_diagonality,
}
ANALYSES = {name: Analysis(f, **TEXTS[name]) for name, f in FUNCTIONS.items()}

# Analyses of the translations of several systems.
COMPARISONS = ("bleu-by-length", "bleu-by-off-diagonality")
