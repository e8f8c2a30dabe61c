"""You, Sun and Iyyer 2020: hard-coded Gaussian attention.

Each preset is one architecture on one corpus, in the size that the paper uses for the
corpus. What the paper leaves open follows its released code: post-normalization,
dropout on embeddings and sub-layer outputs only, no biases in attention, all embeddings
tied.
"""

from collections.abc import Mapping
from collections.abc import Sequence
from functools import partial
from typing import Any

from keras_attnvariants.models import highest
from keras_attnvariants.presets.preset import BASE
from keras_attnvariants.presets.preset import Preset
from keras_attnvariants.presets.preset import PublishedFigures
from keras_attnvariants.presets.preset import TrainingSettings
from keras_attnvariants.presets.preset import layer_config
from keras_attnvariants.presets.preset import learned_attention
from keras_attnvariants.presets.preset import read_table
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

# Offsets of the layers that are not the lowest or the highest.
ENCODER, DECODER = (LEFT, RIGHT), (LEFT, CENTER)


def architecture(
    num_layers: int,
    num_heads: int,
    self_attention: str | None = "learned",
    cross_attention: str = "learned",
    last_layers: int = 1,
    last_heads: int = 1,
    outer_offsets: tuple[Sequence[int], Sequence[int]] = (ENCODER, DECODER),
    length_ratio: float = 1.0,
    **sizes: Any,
) -> dict[str, Any]:
    """The arguments of `Transformer`, in the form of its `get_config`.

    Args:
        num_layers: number of encoder blocks, and of decoder blocks.
        num_heads: number of heads per attention layer, except for `"last"`.
        self_attention: `"learned"`, `None` for no self-attention, or the
            implementation of hard-coded self-attention: `"gaussian"`, `"conv"` or
            `"index"`.
        cross_attention: `"learned"`, `"gaussian"`, or `"last"`: learned in the last
            decoder layers and absent below.
        last_layers: number of those layers, for `"last"`.
        last_heads: number of heads in each of them; together they are as wide as the
            model.
        outer_offsets: offsets of the lowest and the highest layer, in the encoder and
            in the decoder; those of all other layers are (left, right) in the encoder
            and (left, center) in the decoder.
        length_ratio: length ratio of hard-coded cross-attention.
        **sizes: further arguments, passed on unchanged.
    """
    learned = learned_attention(num_heads, **INITIALIZERS)

    def hard_coded(offsets: Sequence[int]) -> dict[str, Any]:
        return layer_config(
            "HardCodedAttention",
            num_heads=num_heads,
            offsets=list(offsets),
            implementation=self_attention,
        )

    def stack(offsets: Sequence[int], outer_offsets: Sequence[int]) -> Any:
        if self_attention in (None, "learned"):
            return None if self_attention is None else learned
        usual, outer = hard_coded(offsets), hard_coded(outer_offsets)
        if usual == outer:
            return usual
        return [outer if i in (0, num_layers - 1) else usual for i in range(num_layers)]

    cross: Any = learned
    if cross_attention == "last":
        heads = learned_attention(last_heads, **INITIALIZERS)
        cross = highest(last_layers, heads, None, num_layers)
    elif cross_attention == "gaussian":
        # The paper lists left, center and right; its released command has no center.
        cross = layer_config(
            "HardCodedCrossAttention",
            num_heads=num_heads,
            offsets=[LEFT, RIGHT],
            length_ratio=length_ratio,
        )
    return {
        "feed_forward": True,
        **sizes,
        "num_layers": num_layers,
        "encoder_attention": stack(ENCODER, outer_offsets[0]),
        "decoder_attention": stack(DECODER, outer_offsets[1]),
        "cross_attention": cross,
    }


MAIN: dict[str, dict[str, Any]] = {
    "base": {},
    "hc-sa": {"self_attention": "gaussian"},
    "hc-all": {"self_attention": "gaussian", "cross_attention": "gaussian"},
    "sh-x": {"self_attention": "gaussian", "cross_attention": "last"},
}

# Arguments of `architecture` by variant; `*-no-ff` is the paper's `*/-ff`.
VARIANTS = MAIN | {
    "base-no-sa": {"self_attention": None},
    "sh-x-no-sa": {"self_attention": None, "cross_attention": "last"},
    **{f"{name}-no-ff": {**MAIN[name], "feed_forward": False} for name in MAIN},
    "conv": {"self_attention": "conv"},
    "index": {"self_attention": "index"},
}

# Table 6: offsets of the outer layers of encoder and decoder; `hc-sa` has (lr | lc).
OFFSETS = {
    name: {**MAIN["hc-sa"], "outer_offsets": offsets}
    for name, offsets in {
        "hc-sa-ll-ll": ((LEFT, LEFT), (LEFT, LEFT)),
        "hc-sa-ll-cc": ((LEFT, LEFT), (CENTER, CENTER)),
        "hc-sa-ll-lc": ((LEFT, LEFT), (LEFT, CENTER)),
    }.items()
}

# Figure 7: more heads in the last layer, or one head in each of several last layers.
CROSS_HEADS = {
    f"sh-x-{heads}-heads": {**MAIN["sh-x"], "last_heads": heads} for heads in (2, 3, 4)
} | {
    f"sh-x-{layers}-layers": {**MAIN["sh-x"], "last_layers": layers}
    for layers in (2, 3, 4, 5)
}

PAPER = "You, Sun and Iyyer 2020, Hard-Coded Gaussian Attention for NMT, ACL 2020"

SIGNATURE = "BLEU+case.mixed+numrefs.1+smooth.exp+tok.intl+version.1.2.11"


# Arguments of `Transformer` and of `TrainingSettings` in the paper's two sizes.
SMALL: tuple[dict[str, Any], dict[str, Any]] = (
    {"num_layers": 5, "hidden_dim": 288, "intermediate_dim": 507, "num_heads": 4},
    {
        "schedule": layer_config(
            "LinearDecay", initial=3e-4, final=1e-5, steps=100_000
        ),
        "batch_tokens": 6000,
        "label_smoothing": 0.0,
    },
)
LARGE: tuple[dict[str, Any], dict[str, Any]] = (
    BASE,
    {
        "schedule": layer_config("NoamSchedule", hidden_dim=512, warmup_steps=4000),
        "batch_tokens": 3175 * 8 * 2,  # on each of 8 GPUs, 2 batches per update
        "label_smoothing": 0.1,
        "averaged_checkpoints": 5,
    },
)

TST2013 = f"{SIGNATURE} on tst2013, the development set"
WMT14 = f"{SIGNATURE} on the test set (3,003 sentences)"
DETOKENIZED = "detokenized SacreBLEU on the test set"

# The mean source length divided by the mean target length of the training data, in
# words, and how the published figures were computed.
CORPORA = {
    "iwslt16-en-de": (4_215_814 / 4_186_988, TST2013),
    "iwslt17-en-ja": (22.9 / 16.0, f"{DETOKENIZED} (1,452 sentences)"),
    "wmt16-en-ro": (27.4 / 28.3, f"{DETOKENIZED} (1,999 sentences)"),
    "wmt14-en-de": (28.5 / 29.6, WMT14),
    "wmt14-en-fr": (26.0 / 28.8, WMT14),
}

# Tables 2, 3 and 5 to 7. Speed and the largest batch are those of one RTX 2080 Ti.
TABLES = {
    "iwslt16-en-de": """
        model       bleu.en-de bleu.de-en sentences_per_second max_batch_tokens
        base        30.0       34.4       43.1                 14_100
        hc-sa       30.3       34.8       44.0                 15_100
        hc-all      21.1       25.7       -                    -
        sh-x        28.2       33.3       50.1                 16_000
        base-no-sa  22.8       -          46.1                 16_100
        sh-x-no-sa  14.9       -          54.9                 17_000
        conv        30.1       -          -                    -
        index       29.8       -          -                    -
        hc-sa-ll-ll 27.4       -          -                    -
        hc-sa-ll-cc 27.8       -          -                    -
        hc-sa-ll-lc 28.1       -          -                    -
    """,
    "wmt16-en-ro": """
        model       bleu.en-ro bleu.ro-en sentences_per_second max_batch_tokens
        base        33.0       33.1       26.8                 9_200
        hc-sa       32.9       32.8       28.4                 10_800
        hc-all      25.5       26.2       -                    -
        sh-x        30.4       31.7       34.9                 11_700
        base-no-sa  27.0       -          30.1                 11_800
        sh-x-no-sa  15.0       -          37.6                 13_300
        conv        32.3       -          -                    -
        index       31.4       -          -                    -
    """,
}
# Table 2, the other corpora.
OTHERS = """
    model       bleu.en-ja bleu.ja-en bleu.en-de bleu.en-fr
    base        20.9       11.6       26.8       40.3
    hc-sa       20.7       10.9       26.3       39.1
    hc-all      10.6       6.1        21.7       35.6
    sh-x        18.5       10.1       23.5       37.1
"""

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


def preset(
    name: str, variant: Mapping[str, Any], corpus: str, published: PublishedFigures
) -> Preset:
    """The preset of a variant, which is arguments of `architecture`, on a corpus."""
    length_ratio, metric = CORPORA[corpus.removeprefix("small-")]
    sizes, training = LARGE if corpus.startswith("wmt") else SMALL
    options = {
        **sizes,
        "vocabulary_size": 32_000,
        "dropout": 0.1,
        "normalization": "post",
    }
    notes = [NOTES.get((name, corpus), ""), COUNTS_NOTE]
    if corpus == "small-wmt16-en-ro":
        notes.append(FIGURE_NOTE)
    elif not published.bleu:
        notes.append(NO_SCORE_NOTE)
    if variant.get("cross_attention") == "gaussian":
        options["length_ratio"] = length_ratio
        notes.append(RATIO_NOTE)
        if corpus == "iwslt16-en-de":
            notes.append(IWSLT16_RATIO_NOTE)
    vocabulary = "joint BPE, 32,000 merges"
    if corpus == "iwslt17-en-ja":
        vocabulary = "joint SentencePiece, 32,000 tokens"
    return Preset(
        name=f"you2020/{name}/{corpus}",
        paper=PAPER,
        architecture=partial(architecture, **variant),
        options=options,
        training=TrainingSettings(
            **training, steps=100_000, vocabulary=vocabulary, metric=metric
        ),
        published=published,
        notes=" ".join(notes).strip(),
    )


for _corpus, _variants in (
    *((corpus, VARIANTS) for corpus in CORPORA),
    ("iwslt16-en-de", OFFSETS),
    # Figure 7 has small models on a large corpus.
    ("small-wmt16-en-ro", {"sh-x": MAIN["sh-x"], **CROSS_HEADS}),
):
    _rows = read_table(TABLES.get(_corpus, OTHERS), _corpus)
    for _name, _variant in _variants.items():
        _, _figures = _rows.get(_name, ({}, PublishedFigures()))
        register(preset(_name, _variant, _corpus, _figures))
