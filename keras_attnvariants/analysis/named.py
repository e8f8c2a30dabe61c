"""The analyses by the names that commands and files have for them.

Beside each stand what its paper found, and what the paper leaves open.
"""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any
from typing import NamedTuple

from keras_attnvariants.analysis.alignments import AlignmentErrors
from keras_attnvariants.analysis.alignments import alignment_errors
from keras_attnvariants.analysis.bleu_by_bin import BleuByBin
from keras_attnvariants.analysis.bleu_by_bin import bleu_by_length
from keras_attnvariants.analysis.bleu_by_bin import bleu_by_off_diagonality
from keras_attnvariants.analysis.contrastive import AgreementByDistance
from keras_attnvariants.analysis.contrastive import ContrastiveAccuracy
from keras_attnvariants.analysis.contrastive import agreement_by_distance
from keras_attnvariants.analysis.contrastive import contrastive_accuracy
from keras_attnvariants.analysis.heads import Entropy
from keras_attnvariants.analysis.heads import Locality
from keras_attnvariants.analysis.heads import OffDiagonality
from keras_attnvariants.analysis.heads import WeightByDistance
from keras_attnvariants.analysis.heads import entropy
from keras_attnvariants.analysis.heads import locality
from keras_attnvariants.analysis.heads import off_diagonality
from keras_attnvariants.analysis.heads import weight_by_distance
from keras_attnvariants.analysis.quadrants import ActivationShares
from keras_attnvariants.analysis.quadrants import QuadrantMaps
from keras_attnvariants.analysis.quadrants import activation_shares
from keras_attnvariants.analysis.quadrants import quadrant_maps
from keras_attnvariants.analysis.streams import Pairs
from keras_attnvariants.analysis.tables import Table
from keras_attnvariants.evaluation.report import Translate


class Analysis(NamedTuple):
    """An analysis, and the result of a paper that stands beside ours.

    Attributes:
        table: class of what it returns.
        function: of a model, its tokenizer and data. Those in `COMPARISONS` take
            functions that translate, by name of the system, before the data.
        source: where the paper shows it.
        finding: what the paper found.
        definition: what the paper leaves open, and what is done here.
    """

    table: type[Table]
    function: Callable[..., Table]
    source: str
    finding: str
    definition: str


def maps_of_first(model: Any, tokenizer: Any, pairs: Iterator[Any]) -> Table:
    """The heat maps of the first sentence."""
    source, target = next(pairs)
    return quadrant_maps(model, tokenizer, source, target)


def by_length(
    model: Any,
    tokenizer: Any,
    systems: Mapping[str, Translate],
    pairs: Pairs,
    **options: Any,
) -> Table:
    """BLEU by the length of the reference, which needs no model."""
    return bleu_by_length(systems, pairs, **options)


ANALYSES = {
    "locality": Analysis(
        Locality,
        locality,
        "You et al. 2020, Fig. 2",
        "Heads of the first encoder layer look 1 or 2 tokens away; those of the "
        "decoder and of cross-attention vary more (5 layers, 2 heads, IWSLT16).",
        "Mean over tokens of |argmax_j a_ij - i|; the first of equal weights is the "
        "largest.",
    ),
    "distance": Analysis(
        WeightByDistance,
        weight_by_distance,
        "Loem et al. 2022, Fig. 1",
        "Most weight is on neighbours, in lower layers more so (6 layers, WMT).",
        "Weights at j - i over all heads of a layer, divided by rows and heads.",
    ),
    "entropy": Analysis(
        Entropy,
        entropy,
        "",
        "No paper reports it.",
        "In bits; relative to equal weights on all tokens that a row could attend to.",
    ),
    "off-diagonality": Analysis(
        OffDiagonality,
        off_diagonality,
        "You et al. 2020, Fig. 6",
        "Self-attention of the base model looks at least two tokens away in a large "
        "share of tokens, which differs between sentences.",
        "A token is off-diagonal if |argmax_j a_ij - i| >= 2; averaged over all heads "
        "and layers, which the paper leaves open.",
    ),
    "activation-shares": Analysis(
        ActivationShares,
        activation_shares,
        "Nguyen and Joty 2018, Tables 3 and 4",
        "Layer 1: 98.01 / 0.20 / 1.60 / 0.19; layer 3 is phrase to phrase with 96.16 "
        "(seed 100).",
        "The paper does not define activations. Three measures: mass, weights of 0.5 "
        "or more (strong), and the quadrant of the largest weight (winner).",
    ),
    "heat-maps": Analysis(
        QuadrantMaps,
        maps_of_first,
        "Nguyen and Joty 2018, Fig. 4 to 6",
        "Layer 3 attends from phrases to phrases, layer 6 from tokens to tokens.",
        "Mean over heads, one sentence.",
    ),
    "alignment-errors": Analysis(
        AlignmentErrors,
        alignment_errors,
        "",
        "Learned heads of the middle layers align best.",
        "Words are linked if any of their tokens are (Zenkel et al. 2019, Garg et al. "
        "2019).",
    ),
    "contrastive": Analysis(
        ContrastiveAccuracy,
        contrastive_accuracy,
        "You et al. 2020, Table 4",
        "base / hc-sa / hc-all: subject-verb 87.5 / 85.8 / 82.5, kein deleted 91.4 / "
        "88.3 / 79.9, nicht deleted 94.0 / 91.4 / 83.2, kein inserted 94.8 / 96.7 / "
        "98.7, compound 88.1 / 89.5 / 80.5.",
        "A pair is right if the reference has the strictly higher sum of token log "
        "probabilities.",
    ),
    "agreement": Analysis(
        AgreementByDistance,
        agreement_by_distance,
        "You et al. 2020, Fig. 5",
        "The gap to base grows with the distance of subject and verb.",
        "Where no distance is annotated, rows are by the position of the changed word.",
    ),
    "bleu-by-length": Analysis(
        BleuByBin,
        by_length,
        "You et al. 2020, Fig. 4",
        "Differences to base: hc-sa is flat, hc-all falls with length.",
        "Bins end at 10, 20, 30 and 40 words of the reference, which the paper leaves "
        "open.",
    ),
    "bleu-by-off-diagonality": Analysis(
        BleuByBin,
        bleu_by_off_diagonality,
        "You et al. 2020, Fig. 6 and 8",
        "hc-all falls behind as off-diagonality grows, sh-x is constant, hc-sa is at "
        "or above base where it is low.",
        "Five bins of equal size by the off-diagonality of base, which the paper "
        "leaves open.",
    ),
}

# Those of several systems and their translations.
COMPARISONS = ("bleu-by-length", "bleu-by-off-diagonality")
