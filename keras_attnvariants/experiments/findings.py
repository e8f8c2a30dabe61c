"""What the papers found, and what they leave open, by analysis."""

from typing import NamedTuple


class Finding(NamedTuple):
    """A result of a paper that stands beside ours.

    Attributes:
        source: where the paper shows it.
        finding: what it found.
        definition: what it leaves open, and what is done here.
    """

    source: str = ""
    finding: str = ""
    definition: str = ""


FINDINGS = {
    "locality": Finding(
        "You et al. 2020, Fig. 2",
        "Heads of the first encoder layer look 1 or 2 tokens away; those of the "
        "decoder and of cross-attention vary more (5 layers, 2 heads, IWSLT16).",
        "Mean over tokens of |argmax_j a_ij - i|; the first of equal weights is the "
        "largest.",
    ),
    "distance": Finding(
        "Loem et al. 2022, Fig. 1",
        "Most weight is on neighbours, in lower layers more so (6 layers, WMT).",
        "Weights at j - i over all heads of a layer, divided by rows and heads.",
    ),
    "entropy": Finding(
        "",
        "No paper reports it.",
        "In bits; relative to equal weights on all tokens that a row could attend to.",
    ),
    "off-diagonality": Finding(
        "You et al. 2020, Fig. 6",
        "Self-attention of the base model looks at least two tokens away in a large "
        "share of tokens, which differs between sentences.",
        "A token is off-diagonal if |argmax_j a_ij - i| >= 2; averaged over all heads "
        "and layers, which the paper leaves open.",
    ),
    "activation-shares": Finding(
        "Nguyen and Joty 2018, Tables 3 and 4",
        "Layer 1: 98.01 / 0.20 / 1.60 / 0.19; layer 3 is phrase to phrase with 96.16 "
        "(seed 100).",
        "The paper does not define activations. Three measures: mass, weights of 0.5 "
        "or more (strong), and the quadrant of the largest weight (winner).",
    ),
    "heat-maps": Finding(
        "Nguyen and Joty 2018, Fig. 4 to 6",
        "Layer 3 attends from phrases to phrases, layer 6 from tokens to tokens.",
        "Mean over heads, one sentence.",
    ),
    "alignment-errors": Finding(
        "",
        "Learned heads of the middle layers align best.",
        "Words are linked if any of their tokens are (Zenkel et al. 2019, Garg et al. "
        "2019).",
    ),
    "contrastive": Finding(
        "You et al. 2020, Table 4",
        "base / hc-sa / hc-all: subject-verb 87.5 / 85.8 / 82.5, kein deleted 91.4 / "
        "88.3 / 79.9, nicht deleted 94.0 / 91.4 / 83.2, kein inserted 94.8 / 96.7 / "
        "98.7, compound 88.1 / 89.5 / 80.5.",
        "A pair is right if the reference has the strictly higher sum of token log "
        "probabilities.",
    ),
    "agreement": Finding(
        "You et al. 2020, Fig. 5",
        "The gap to base grows with the distance of subject and verb.",
        "Where no distance is annotated, rows are by the position of the changed word.",
    ),
    "bleu-by-length": Finding(
        "You et al. 2020, Fig. 4",
        "Differences to base: hc-sa is flat, hc-all falls with length.",
        "Bins end at 10, 20, 30 and 40 words of the reference, which the paper leaves "
        "open.",
    ),
    "bleu-by-off-diagonality": Finding(
        "You et al. 2020, Fig. 6 and 8",
        "hc-all falls behind as off-diagonality grows, sh-x is constant, hc-sa is at "
        "or above base where it is low.",
        "Five bins of equal size by the off-diagonality of base, which the paper "
        "leaves open.",
    ),
}
