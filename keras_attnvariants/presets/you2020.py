"""You, Sun and Iyyer 2020: hard-coded Gaussian attention.

Each preset is one architecture on one corpus, in the size that the paper uses for the
corpus. What the paper leaves open follows its released code: post-normalization,
dropout on embeddings and sub-layer outputs only, no biases in attention, all embeddings
tied.
"""

from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace
from typing import Any

from keras_attnvariants.models import highest
from keras_attnvariants.presets.preset import BASE
from keras_attnvariants.presets.preset import Preset
from keras_attnvariants.presets.preset import PublishedFigures
from keras_attnvariants.presets.preset import TrainingSettings
from keras_attnvariants.presets.preset import layer_config
from keras_attnvariants.presets.preset import learned_attention
from keras_attnvariants.presets.registry import register

# The released code initializes the projections to queries, keys and values as one
# stacked matrix of 3 d rows. Glorot's bound is then sqrt(6 / 4d), which is a scale of
# 0.5 for each projection.
STACKED_GLOROT = {
    "class_name": "VarianceScaling",
    "config": {"scale": 0.5, "mode": "fan_avg", "distribution": "uniform"},
}

# Initializers of learned attention in the released code.
INITIALIZERS = {
    "kernel_initializer": STACKED_GLOROT,
    "output_initializer": "glorot_uniform",
}

LEFT, CENTER, RIGHT = -1, 0, 1


@dataclass(frozen=True)
class You2020Architecture:
    """One row of the paper's tables, in any size.

    Attributes:
        self_attention: `"learned"`, `None` for no self-attention, or the
            implementation of hard-coded self-attention: `"gaussian"`, `"conv"` or
            `"index"`.
        cross_attention: `"learned"`, `"gaussian"`, or `"last"`: learned in the last
            decoder layers and absent below.
        last_layers: number of those layers, for `"last"`.
        last_heads: number of heads in each of them; together they are as wide as the
            model.
        feed_forward: whether there are feed-forward sub-layers.
        outer_offsets: offsets of the lowest and the highest layer, in the encoder and
            in the decoder; those of all other layers are (left, right) in the encoder
            and (left, center) in the decoder.
    """

    self_attention: str | None = "learned"
    cross_attention: str = "learned"
    last_layers: int = 1
    last_heads: int = 1
    feed_forward: bool = True
    outer_offsets: tuple[Sequence[int], Sequence[int]] = (
        (LEFT, RIGHT),
        (LEFT, CENTER),
    )

    def arguments(
        self, num_layers: int, num_heads: int, length_ratio: float = 1.0, **sizes: Any
    ) -> dict[str, Any]:
        """The arguments of `Transformer`, in the form of its `get_config`.

        Args:
            num_layers: number of encoder blocks, and of decoder blocks.
            num_heads: number of heads per attention layer, except for `"last"`.
            length_ratio: length ratio of hard-coded cross-attention.
            **sizes: further arguments, passed on unchanged.
        """
        outer_encoder, outer_decoder = self.outer_offsets
        return {
            **sizes,
            "num_layers": num_layers,
            "encoder_attention": self.stack(
                num_layers, num_heads, (LEFT, RIGHT), outer_encoder
            ),
            "decoder_attention": self.stack(
                num_layers, num_heads, (LEFT, CENTER), outer_decoder
            ),
            "cross_attention": self.cross(num_layers, num_heads, length_ratio),
            "feed_forward": self.feed_forward,
        }

    def stack(
        self,
        num_layers: int,
        num_heads: int,
        offsets: Sequence[int],
        outer_offsets: Sequence[int],
    ) -> Any:
        """The self-attention of one stack: one configuration, or one per layer."""
        if self.self_attention is None:
            return None
        if self.self_attention == "learned":
            return learned_attention(num_heads, **INITIALIZERS)
        usual, outer = (
            hard_coded(num_heads, pair, self.self_attention)
            for pair in (offsets, outer_offsets)
        )
        if usual == outer:
            return usual
        return [outer if i in (0, num_layers - 1) else usual for i in range(num_layers)]

    def cross(self, num_layers: int, num_heads: int, length_ratio: float) -> Any:
        """The cross-attention of the decoder: one configuration, or one per layer."""
        if self.cross_attention == "learned":
            return learned_attention(num_heads, **INITIALIZERS)
        if self.cross_attention == "last":
            heads = learned_attention(self.last_heads, **INITIALIZERS)
            return highest(self.last_layers, heads, None, num_layers)
        # The paper lists left, center and right; its released command has no center.
        return layer_config(
            "HardCodedCrossAttention",
            num_heads=num_heads,
            offsets=[LEFT, RIGHT],
            length_ratio=length_ratio,
        )


def hard_coded(
    num_heads: int, offsets: Sequence[int], implementation: str
) -> dict[str, Any]:
    """Hard-coded self-attention in serialized form."""
    return layer_config(
        "HardCodedAttention",
        num_heads=num_heads,
        offsets=list(offsets),
        implementation=implementation,
    )


def without_feed_forward(
    variants: dict[str, You2020Architecture],
) -> dict[str, You2020Architecture]:
    """The paper's `*/-ff`: the same architectures without feed-forward sub-layers."""
    return {
        f"{name}-no-ff": replace(variant, feed_forward=False)
        for name, variant in variants.items()
    }


MAIN = {
    "base": You2020Architecture(),
    "hc-sa": You2020Architecture("gaussian"),
    "hc-all": You2020Architecture("gaussian", "gaussian"),
    "sh-x": You2020Architecture("gaussian", "last"),
}

ARCHITECTURES = {
    **MAIN,
    "base-no-sa": You2020Architecture(None),
    "sh-x-no-sa": You2020Architecture(None, "last"),
    **without_feed_forward(MAIN),
    "conv": You2020Architecture("conv"),
    "index": You2020Architecture("index"),
}

# Table 6: offsets of the outer layers of encoder and decoder; `hc-sa` has (lr | lc).
OFFSETS = {
    name: You2020Architecture("gaussian", outer_offsets=(encoder, decoder))
    for name, encoder, decoder in (
        ("hc-sa-ll-ll", (LEFT, LEFT), (LEFT, LEFT)),
        ("hc-sa-ll-cc", (LEFT, LEFT), (CENTER, CENTER)),
        ("hc-sa-ll-lc", (LEFT, LEFT), (LEFT, CENTER)),
    )
}

# Figure 7: more heads in the last layer, or one head in each of several last layers.
CROSS_HEADS = {
    f"sh-x-{heads}-heads": replace(MAIN["sh-x"], last_heads=heads)
    for heads in (2, 3, 4)
} | {
    f"sh-x-{layers}-layers": replace(MAIN["sh-x"], last_layers=layers)
    for layers in (2, 3, 4, 5)
}


PAPER = "You, Sun and Iyyer 2020, Hard-Coded Gaussian Attention for NMT, ACL 2020"

SIGNATURE = "BLEU+case.mixed+numrefs.1+smooth.exp+tok.intl+version.1.2.11"


@dataclass(frozen=True)
class You2020Size:
    """One of the paper's two model sizes, and how models of this size are trained.

    Attributes:
        options: arguments of `Transformer`.
        training: arguments of `TrainingSettings`.
    """

    options: Mapping[str, Any]
    training: Mapping[str, Any]


@dataclass(frozen=True)
class You2020Corpus:
    """One of the five corpora; one of them is used in both sizes.

    Attributes:
        size: size of the models trained on it.
        length_ratio: mean source length divided by mean target length of the
            training data, in words, for the first direction.
        metric: how the published figures were computed.
        vocabulary: how words are split into tokens.
    """

    size: You2020Size
    length_ratio: float
    metric: str
    vocabulary: str = "joint BPE, 32,000 merges"


SMALL = You2020Size(
    options={
        "num_layers": 5,
        "hidden_dim": 288,
        "intermediate_dim": 507,
        "num_heads": 4,
    },
    training={
        "schedule": layer_config(
            "LinearDecay", initial=3e-4, final=1e-5, steps=100_000
        ),
        "batch_tokens": 6000,
        "steps": 100_000,
        "label_smoothing": 0.0,
    },
)

LARGE = You2020Size(
    options=BASE,
    training={
        "schedule": layer_config("NoamSchedule", hidden_dim=512, warmup_steps=4000),
        "batch_tokens": 3175 * 8 * 2,  # on each of 8 GPUs, 2 batches per update
        "steps": 100_000,
        "label_smoothing": 0.1,
        "averaged_checkpoints": 5,
    },
)

CORPORA = {
    "iwslt16-en-de": You2020Corpus(
        SMALL, 4_215_814 / 4_186_988, f"{SIGNATURE} on tst2013, the development set"
    ),
    "iwslt17-en-ja": You2020Corpus(
        SMALL,
        22.9 / 16.0,
        "detokenized SacreBLEU on the test set (1,452 sentences)",
        vocabulary="joint SentencePiece, 32,000 tokens",
    ),
    "wmt16-en-ro": You2020Corpus(
        LARGE, 27.4 / 28.3, "detokenized SacreBLEU on the test set (1,999 sentences)"
    ),
    # Figure 7 has small models on a large corpus.
    "small-wmt16-en-ro": You2020Corpus(
        SMALL, 27.4 / 28.3, "detokenized SacreBLEU on the test set (1,999 sentences)"
    ),
    "wmt14-en-de": You2020Corpus(
        LARGE, 28.5 / 29.6, f"{SIGNATURE} on the test set (3,003 sentences)"
    ),
    "wmt14-en-fr": You2020Corpus(
        LARGE, 26.0 / 28.8, f"{SIGNATURE} on the test set (3,003 sentences)"
    ),
}

# Table 2: BLEU of base, hc-sa, hc-all and sh-x by corpus and direction.
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

# Tables 3 and 7 (models without self-attention), 5 and 6: BLEU for the first direction.
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

# Tables 7 and 3: sentences per second, and the largest training batch in tokens, on one
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
    ("sh-x", "iwslt16-en-de"): "The text and Table 7 give 28.1 for en-de.",
    ("sh-x", "wmt16-en-ro"): "Table 3 gives 30.3 for en-ro.",
    ("hc-sa", "wmt16-en-ro"): "Table 5 gives 32.4 for en-ro and names no architecture.",
    ("conv", "wmt16-en-ro"): "The paper does not name the architecture.",
    ("index", "wmt16-en-ro"): "The paper does not name the architecture.",
}

COUNTS_NOTE = "The paper prints no parameter counts. A vocabulary of 32,000 is assumed."

FIGURE_NOTE = "The paper plots the scores in Figure 7 and does not print them."

RATIO_NOTE = (
    "`length_ratio` is in words, from English to the other language. For the other "
    "direction use its inverse or, better, the ratio in tokens of your own data. In "
    "the released code it has no effect; the published figures may be those of a ratio "
    "of 1.0."
)

IWSLT16_RATIO_NOTE = (
    "For this corpus Table 1 repeats the mean lengths of wmt14-en-de (ratio 0.963). "
    "`length_ratio` follows from the numbers of words that are commented out in the "
    "released code, 1.0069; the ratio that the code uses is 1.0361."
)

NO_SCORE_NOTE = "The paper prints no score of this model on this corpus."


def published(variant: str, corpus: str) -> PublishedFigures:
    """The paper's figures for a variant on a corpus."""
    column = list(MAIN).index(variant) if variant in MAIN else None
    directions = MAIN_BLEU.get(corpus, {})
    bleu = {}
    if column is not None:
        bleu = {way: scores[column] for way, scores in directions.items()}
    elif variant in OTHER_BLEU.get(corpus, {}):
        bleu = {next(iter(directions)): OTHER_BLEU[corpus][variant]}
    return PublishedFigures(bleu, *EFFICIENCY.get(corpus, {}).get(variant, ()))


def notes(variant: str, corpus: str, hard_coded_cross: bool) -> str:
    """Notes on the figures."""
    parts = [NOTES.get((variant, corpus), ""), COUNTS_NOTE]
    if corpus == "small-wmt16-en-ro":
        parts.append(FIGURE_NOTE)
    elif not published(variant, corpus).bleu:
        parts.append(NO_SCORE_NOTE)
    if hard_coded_cross:
        parts.append(RATIO_NOTE)
        if corpus == "iwslt16-en-de":
            parts.append(IWSLT16_RATIO_NOTE)
    return " ".join(part for part in parts if part)


def preset(name: str, architecture: You2020Architecture, corpus_name: str) -> Preset:
    """The preset of an architecture on a corpus."""
    corpus = CORPORA[corpus_name]
    options = {
        **corpus.size.options,
        "vocabulary_size": 32_000,
        "dropout": 0.1,
        "normalization": "post",
    }
    hard_coded_cross = architecture.cross_attention == "gaussian"
    if hard_coded_cross:
        options["length_ratio"] = corpus.length_ratio
    return Preset(
        name=f"you2020/{name}/{corpus_name}",
        paper=PAPER,
        architecture=architecture.arguments,
        options=options,
        training=TrainingSettings(
            **corpus.size.training, vocabulary=corpus.vocabulary, metric=corpus.metric
        ),
        published=published(name, corpus_name),
        notes=notes(name, corpus_name, hard_coded_cross),
    )


for _corpus in MAIN_BLEU:
    for _name, _architecture in ARCHITECTURES.items():
        register(preset(_name, _architecture, _corpus))
for _name, _architecture in OFFSETS.items():
    register(preset(_name, _architecture, "iwslt16-en-de"))
for _name, _architecture in {"sh-x": MAIN["sh-x"], **CROSS_HEADS}.items():
    register(preset(_name, _architecture, "small-wmt16-en-ro"))
