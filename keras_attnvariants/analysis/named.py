"""The analyses by the names that commands and files have for them.

Beside each stand what its paper found, and what the paper leaves open.
"""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any
from typing import NamedTuple
from typing import get_type_hints

from keras_attnvariants.analysis.alignments import alignment_errors
from keras_attnvariants.analysis.bleu_by_bin import BleuByBin
from keras_attnvariants.analysis.bleu_by_bin import bleu_by_length
from keras_attnvariants.analysis.bleu_by_bin import bleu_by_off_diagonality
from keras_attnvariants.analysis.contrastive import agreement_by_distance
from keras_attnvariants.analysis.contrastive import contrastive_accuracy
from keras_attnvariants.analysis.heads import entropy
from keras_attnvariants.analysis.heads import locality
from keras_attnvariants.analysis.heads import off_diagonality
from keras_attnvariants.analysis.heads import weight_by_distance
from keras_attnvariants.analysis.quadrants import QuadrantMaps
from keras_attnvariants.analysis.quadrants import activation_shares
from keras_attnvariants.analysis.quadrants import quadrant_maps
from keras_attnvariants.analysis.streams import Pairs
from keras_attnvariants.analysis.tables import Table
from keras_attnvariants.evaluation.report import Translate


class Analysis(NamedTuple):
    """An analysis, and the result of a paper that stands beside ours.

    Attributes:
        function: takes a model, its tokenizer and data. Those in `COMPARISONS` take
            functions that translate, by name of the system, before the data.
        source: where the paper shows it.
        finding: finding of the paper.
        definition: our choice where the paper leaves something open.
    """

    function: Callable[..., Table]
    source: str
    finding: str
    definition: str

    @property
    def table(self) -> type[Table]:
        """The class of what the function returns."""
        found: type[Table] = get_type_hints(self.function)["return"]
        return found


def maps_of_first(model: Any, tokenizer: Any, pairs: Iterator[Any]) -> QuadrantMaps:
    """The heat maps of the first sentence."""
    source, target = next(pairs)
    return quadrant_maps(model, tokenizer, source, target)


def by_length(
    model: Any,
    tokenizer: Any,
    systems: Mapping[str, Translate],
    pairs: Pairs,
    **options: Any,
) -> BleuByBin:
    """BLEU by the length of the reference, which needs no model."""
    return bleu_by_length(systems, pairs, **options)


ANALYSES = {
    "locality": Analysis(
        locality,
        "You et al. 2020, Fig. 2",
        "Heads of the first encoder layer look 1 or 2 tokens away; those of the "
        "decoder and of cross-attention vary more (5 layers, 2 heads, IWSLT16).",
        "Mean of |argmax_j a_ij - i|; the first of equal weights is the largest.",
    ),
    "distance": Analysis(
        weight_by_distance,
        "Loem et al. 2022, Fig. 1",
        "Most weight is on neighbours, in lower layers more so (6 layers, WMT).",
        "Weights at j - i over all heads of a layer, divided by rows and heads.",
    ),
    "entropy": Analysis(
        entropy,
        "",
        "No paper reports it.",
        "In bits; relative to equal weights on all tokens that a row could attend to.",
    ),
    "off-diagonality": Analysis(
        off_diagonality,
        "You et al. 2020, Fig. 6",
        "Much self-attention of base looks two or more tokens away, more in some "
        "sentences than in others.",
        "Share of tokens with |argmax_j a_ij - i| >= 2; the mean over heads is ours.",
    ),
    "activation-shares": Analysis(
        activation_shares,
        "Nguyen and Joty 2018, Tables 3 and 4",
        "Layer 1: 98.01 / 0.20 / 1.60 / 0.19; layer 3 is phrase to phrase with 96.16 "
        "(seed 100).",
        "The paper does not define activations. Three measures: mass, weights of 0.5 "
        "or more (strong), and the quadrant of the largest weight (winner).",
    ),
    "heat-maps": Analysis(
        maps_of_first,
        "Nguyen and Joty 2018, Fig. 4 to 6",
        "Layer 3 attends from phrases to phrases, layer 6 from tokens to tokens.",
        "Mean over heads, one sentence.",
    ),
    "alignment-errors": Analysis(
        alignment_errors,
        "",
        "Learned heads of the middle layers align best.",
        "Words are linked if any of their tokens are (Zenkel et al. 2019).",
    ),
    "contrastive": Analysis(
        contrastive_accuracy,
        "You et al. 2020, Table 4",
        "base / hc-sa / hc-all: subject-verb 87.5 / 85.8 / 82.5, kein deleted 91.4 / "
        "88.3 / 79.9, nicht deleted 94.0 / 91.4 / 83.2, kein inserted 94.8 / 96.7 / "
        "98.7, compound 88.1 / 89.5 / 80.5.",
        "A pair is right if its reference has the strictly higher log probability.",
    ),
    "agreement": Analysis(
        agreement_by_distance,
        "You et al. 2020, Fig. 5",
        "The gap to base grows with the distance of subject and verb.",
        "Where no distance is annotated, rows are by the position of the changed word.",
    ),
    "bleu-by-length": Analysis(
        by_length,
        "You et al. 2020, Fig. 4",
        "Differences to base: hc-sa is flat, hc-all falls with length.",
        "Bins end at 10, 20, 30 and 40 words of the reference; the paper has none.",
    ),
    "bleu-by-off-diagonality": Analysis(
        bleu_by_off_diagonality,
        "You et al. 2020, Fig. 6 and 8",
        "hc-all falls behind as off-diagonality grows, sh-x is constant, hc-sa is at "
        "or above base where it is low.",
        "Five bins of equal size by the off-diagonality of base, our choice.",
    ),
}

# Those of several systems and their translations.
COMPARISONS = ("bleu-by-length", "bleu-by-off-diagonality")
