"""You, Sun and Iyyer 2020: hard-coded Gaussian attention, in all published sizes.

A preset is a variant, a corpus, and the size that the paper uses for that corpus.
What the paper does not say follows its released code: post-normalisation, dropout on
embeddings and sub-layer outputs only, no biases in attention, all embeddings tied.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from keras_attnvariants.presets.layers import BASE
from keras_attnvariants.presets.layers import layer
from keras_attnvariants.presets.preset import Preset
from keras_attnvariants.presets.preset import Published
from keras_attnvariants.presets.preset import Training
from keras_attnvariants.presets.registry import register
from keras_attnvariants.presets.variants import CROSS_HEADS
from keras_attnvariants.presets.variants import MAIN
from keras_attnvariants.presets.variants import OFFSETS
from keras_attnvariants.presets.variants import VARIANTS
from keras_attnvariants.presets.variants import Variant

PAPER = "You, Sun and Iyyer 2020, Hard-Coded Gaussian Attention for NMT, ACL 2020"

SIGNATURE = "BLEU+case.mixed+numrefs.1+smooth.exp+tok.intl+version.1.2.11"


@dataclass(frozen=True)
class Size:
    """One of the two sizes of model, and how the paper trains it.

    Attributes:
        options: arguments of `Transformer`.
        training: arguments of `Training`.
    """

    options: Mapping[str, Any]
    training: Mapping[str, Any]


@dataclass(frozen=True)
class Corpus:
    """One of the five corpora.

    Attributes:
        size: of the models trained on it.
        length_ratio: mean source length over mean target length in the training
            data, in words, for the first of the two directions.
        metric: what the published figures are.
        vocabulary: how words are cut into tokens.
    """

    size: Size
    length_ratio: float
    metric: str
    vocabulary: str = "joint BPE, 32,000 merges"


SMALL = Size(
    options={
        "num_layers": 5,
        "hidden_dim": 288,
        "intermediate_dim": 507,
        "num_heads": 4,
    },
    training={
        "schedule": layer("LinearDecay", initial=3e-4, final=1e-5, steps=100_000),
        "batch_tokens": 6000,
        "steps": 100_000,
        "label_smoothing": 0.0,
    },
)

LARGE = Size(
    options=BASE,
    training={
        "schedule": layer("NoamSchedule", hidden_dim=512, warmup_steps=4000),
        "batch_tokens": 3175 * 8 * 2,  # on each of 8 GPUs, 2 batches per update
        "steps": 100_000,
        "label_smoothing": 0.1,
        "averaged_checkpoints": 5,
    },
)

CORPORA = {
    "iwslt16-en-de": Corpus(
        SMALL, 4_215_814 / 4_186_988, f"{SIGNATURE} on tst2013, the development set"
    ),
    "iwslt17-en-ja": Corpus(
        SMALL,
        22.9 / 16.0,
        "detokenised SacreBLEU on the test set (1,452 sentences)",
        vocabulary="joint SentencePiece, 32,000 tokens",
    ),
    "wmt16-en-ro": Corpus(
        LARGE, 27.4 / 28.3, "detokenised SacreBLEU on the test set (1,999 sentences)"
    ),
    # Figure 7 has the small models on a large corpus.
    "small-wmt16-en-ro": Corpus(
        SMALL, 27.4 / 28.3, "detokenised SacreBLEU on the test set (1,999 sentences)"
    ),
    "wmt14-en-de": Corpus(
        LARGE, 28.5 / 29.6, f"{SIGNATURE} on the test set (3,003 sentences)"
    ),
    "wmt14-en-fr": Corpus(
        LARGE, 26.0 / 28.8, f"{SIGNATURE} on the test set (3,003 sentences)"
    ),
}

# Table 2: BLEU of base, hc-sa, hc-all, sh-x by corpus and direction.
MAIN_BLEU = {
    "iwslt16-en-de": {
        "en-de": (30.0, 30.3, 21.1, 28.2),
        "de-en": (34.4, 34.8, 25.7, 33.3),
    },
    "iwslt17-en-ja": {
        "en-ja": (20.9, 20.7, 10.6, 18.5),
        "ja-en": (11.6, 10.9, 6.1, 10.1),
    },
    "wmt16-en-ro": {
        "en-ro": (33.0, 32.9, 25.5, 30.4),
        "ro-en": (33.1, 32.8, 26.2, 31.7),
    },
    "wmt14-en-de": {"en-de": (26.8, 26.3, 21.7, 23.5)},
    "wmt14-en-fr": {"en-fr": (40.3, 39.1, 35.6, 37.1)},
}

# Tables 3 and 7 (without self-attention), 5 and 6, for the first direction.
OTHER_BLEU = {
    "iwslt16-en-de": {
        "base-no-sa": 22.8,
        "sh-x-no-sa": 14.9,
        "conv": 30.1,
        "index": 29.8,
        "hc-sa-ll-ll": 27.4,
        "hc-sa-ll-cc": 27.8,
        "hc-sa-ll-lc": 28.1,
    },
    "wmt16-en-ro": {
        "base-no-sa": 27.0,
        "sh-x-no-sa": 15.0,
        "conv": 32.3,
        "index": 31.4,
    },
}

# Tables 7 and 3: sentences per second, and tokens that fit into a batch, on one
# RTX 2080 Ti.
EFFICIENCY = {
    "iwslt16-en-de": {
        "base": (43.1, 14_100),
        "hc-sa": (44.0, 15_100),
        "sh-x": (50.1, 16_000),
        "base-no-sa": (46.1, 16_100),
        "sh-x-no-sa": (54.9, 17_000),
    },
    "wmt16-en-ro": {
        "base": (26.8, 9_200),
        "hc-sa": (28.4, 10_800),
        "sh-x": (34.9, 11_700),
        "base-no-sa": (30.1, 11_800),
        "sh-x-no-sa": (37.6, 13_300),
    },
}

NOTES = {
    ("sh-x", "iwslt16-en-de"): "28.1 en-de in the text and in Table 7.",
    ("sh-x", "wmt16-en-ro"): "30.3 en-ro in Table 3.",
    ("hc-sa", "wmt16-en-ro"): "32.4 en-ro in Table 5, for an unnamed architecture.",
    ("conv", "wmt16-en-ro"): "The paper does not say for which architecture.",
    ("index", "wmt16-en-ro"): "The paper does not say for which architecture.",
}

COUNTS_NOTE = "The paper prints no parameter counts; a vocabulary of 32,000 is assumed."

FIGURE_NOTE = "The paper draws the figures (Figure 7) and does not print them."

RATIO_NOTE = (
    "`length_ratio` counts words, en to the other language: give its inverse for the "
    "other direction, or better, the ratio in tokens of your own data. In the released "
    "code it has no effect, so that the published figures may be those of 1.0."
)

IWSLT16_RATIO_NOTE = (
    "Table 1 repeats the mean lengths of wmt14-en-de for this corpus (ratio 0.963); "
    "`length_ratio` is that of the word totals kept in the released code."
)


def published(variant: str, corpus: str) -> Published:
    """The paper's figures for a variant on a corpus."""
    column = list(MAIN).index(variant) if variant in MAIN else None
    directions = MAIN_BLEU.get(corpus, {})
    bleu = {}
    if column is not None:
        bleu = {way: scores[column] for way, scores in directions.items()}
    elif variant in OTHER_BLEU.get(corpus, {}):
        bleu = {next(iter(directions)): OTHER_BLEU[corpus][variant]}
    return Published(bleu, *EFFICIENCY.get(corpus, {}).get(variant, ()))


def notes(variant: str, corpus: str, hard_coded_cross: bool) -> str:
    """What a reader of the figures should know."""
    parts = [NOTES.get((variant, corpus), ""), COUNTS_NOTE]
    if corpus == "small-wmt16-en-ro":
        parts.append(FIGURE_NOTE)
    if hard_coded_cross:
        parts.append(RATIO_NOTE)
        if corpus == "iwslt16-en-de":
            parts.append(IWSLT16_RATIO_NOTE)
    return " ".join(part for part in parts if part)


def preset(name: str, variant: Variant, corpus_name: str) -> Preset:
    """The preset of a variant on a corpus."""
    corpus = CORPORA[corpus_name]
    options = {
        **corpus.size.options,
        "vocabulary_size": 32_000,
        "dropout": 0.1,
        "normalization": "post",
    }
    hard_coded_cross = variant.cross_attention == "gaussian"
    if hard_coded_cross:
        options["length_ratio"] = corpus.length_ratio
    return Preset(
        name=f"you2020/{name}/{corpus_name}",
        paper=PAPER,
        architecture=variant.architecture,
        options=options,
        training=Training(
            **corpus.size.training, vocabulary=corpus.vocabulary, metric=corpus.metric
        ),
        published=published(name, corpus_name),
        notes=notes(name, corpus_name, hard_coded_cross),
    )


for _corpus in MAIN_BLEU:
    for _name, _variant in VARIANTS.items():
        register(preset(_name, _variant, _corpus))
for _name, _variant in OFFSETS.items():
    register(preset(_name, _variant, "iwslt16-en-de"))
for _name, _variant in {"sh-x": MAIN["sh-x"], **CROSS_HEADS}.items():
    register(preset(_name, _variant, "small-wmt16-en-ro"))
