"""Rosendahl, Herold, Petrick and Ney 2021: recurrent cross-attention.

A Transformer with one of nine recurrences in every cross-attention. What the paper
leaves open follows a later public configuration of the same group for Romanian:
pre-normalization, no biases in attention, a bias in the output projection, dropout
inside attention and feed-forward sub-layers, initializers of attention, settings of
Adam, beam size and vocabulary.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from keras_attnvariants.presets.preset import BASE
from keras_attnvariants.presets.preset import Preset
from keras_attnvariants.presets.preset import PublishedFigures
from keras_attnvariants.presets.preset import TrainingSettings
from keras_attnvariants.presets.preset import layer_config
from keras_attnvariants.presets.preset import learned_attention
from keras_attnvariants.presets.registry import register

FAN_IN = {
    "class_name": "VarianceScaling",
    "config": {"scale": 1.0, "mode": "fan_in", "distribution": "uniform"},
}

PAPER = (
    "Rosendahl, Herold, Petrick and Ney 2021, Recurrent Attention for the "
    "Transformer, Insights 2021"
)


def architecture(
    recurrence: str | None,
    num_heads: int,
    attention: Mapping[str, Any] | None = None,
    **sizes: Any,
) -> dict[str, Any]:
    """The arguments of `Transformer`, in the form of its `get_config`.

    Args:
        recurrence: recurrence of all cross-attention; `None` for learned dot-product
            attention.
        num_heads: number of heads per attention layer.
        attention: further arguments of all attention layers.
        **sizes: further arguments, passed on unchanged.
    """
    options = {"num_heads": num_heads, **(attention or {})}
    plain = cross = learned_attention(**options)
    if recurrence is not None:
        cross = layer_config(
            "RecurrentCrossAttention", recurrence=recurrence, **options
        )
    return {
        **sizes,
        "encoder_attention": plain,
        "decoder_attention": plain,
        "cross_attention": cross,
    }


# Equation 2, equations 3 and 4, 5 to 8, 9, and 10.
VARIANTS = {"baseline": partial(architecture, None)} | {
    name.replace("_", "-"): partial(architecture, name)
    for name in (
        "context",
        "weights",
        "accumulated_weights",
        "expanded_shared",
        "expanded_full",
        "expanded_head",
        "expanded_head_key",
        "accumulated_energies",
        "subtracted_weights",
    )
}


@dataclass(frozen=True)
class Rosendahl2021Corpus:
    """One of the three corpora.

    Attributes:
        direction: direction of translation.
        vocabulary_size: number of tokens.
        vocabulary: how words are split into tokens.
        dropout: rate of all kinds of dropout.
        test: name of the test set.
        best: best BLEU of others, from Table 2.
        scores: BLEU and TER by variant, from Table 2.
    """

    direction: str
    vocabulary_size: int
    vocabulary: str
    dropout: float
    test: str
    best: float
    scores: Mapping[str, tuple[float, float]]


CORPORA = {
    "wmt16-ro-en": Rosendahl2021Corpus(
        "ro-en",
        19_093,
        "joint BPE, 20,000 merges",
        dropout=0.2,
        test="newstest2016",
        best=34.5,
        scores={
            "baseline": (34.2, 53.5),
            "context": (33.8, 53.8),
            "weights": (34.3, 53.4),
            "accumulated-weights": (34.2, 53.4),
            "expanded-shared": (34.0, 53.6),
            "accumulated-energies": (34.2, 53.2),
            "subtracted-weights": (34.3, 53.2),
        },
    ),
    "wmt18-tr-en": Rosendahl2021Corpus(
        "tr-en",
        20_000,
        "joint BPE, 20,000 merges",
        dropout=0.3,
        test="newstest2018",
        best=20.2,
        scores={
            "baseline": (19.6, 70.2),
            "context": (19.5, 70.3),
            "weights": (19.8, 70.2),
            "accumulated-weights": (19.7, 70.3),
            "expanded-shared": (19.8, 70.5),
            "accumulated-energies": (19.6, 70.2),
            "subtracted-weights": (19.5, 71.2),
        },
    ),
    "iwslt17-en-it": Rosendahl2021Corpus(
        "en-it",
        8_000,
        "joint BPE, 8,000 merges",
        dropout=0.3,
        test="tst2010",
        best=28.5,
        scores={
            "baseline": (28.9, 58.5),
            "context": (28.9, 58.3),
            "weights": (29.1, 58.0),
            "accumulated-weights": (29.1, 58.3),
            "expanded-shared": (28.9, 58.5),
            "accumulated-energies": (28.7, 58.7),
            "subtracted-weights": (28.7, 58.8),
        },
    ),
}

# Table 1: BLEU and TER on the development set of wmt16-ro-en.
DEVELOPMENT = {
    "baseline": (35.7, 51.4),
    "expanded-shared": (35.9, 51.1),
    "expanded-full": (35.9, 51.1),
    "expanded-head": (35.7, 51.5),
    "expanded-head-key": (33.8, 53.2),
}

# Table 2: time per checkpoint on wmt16-ro-en, relative to the baseline.
TRAINING_TIME = {
    "baseline": 1.0,
    "context": 5.6,
    "weights": 6.0,
    "accumulated-weights": 6.1,
    "expanded-shared": 7.5,
    "accumulated-energies": 5.4,
    "subtracted-weights": 7.9,
}

STEPS = 100_000

TRAINING_NOTE = (
    "The paper gives no learning rate schedule and no number of updates; the number of "
    "updates and the length penalty of 0.6 are assumed. Pre-normalization, label "
    "smoothing, the settings of Adam and a beam of 12 are not the paper's either, but "
    "those of a later configuration of its authors. This configuration starts "
    "at the learning rate given here and multiplies it by 0.7 when the development "
    "score has not improved for 9 quarters of an epoch. It accumulates the gradients "
    "of 3 batches, trains on sentences of up to 100 tokens, and limits outputs to 3 "
    "times the length of the source. It draws all matrices uniformly, with variance 1 "
    "/ fan-in; here feed-forward sub-layers and embeddings have the initializers of "
    "all models of this package. The paper's 9,600 tokens per batch are taken as those "
    "of one side; some of its recurrent models had 7,600. The weights with the best "
    "development score are kept."
)

COUNTS_NOTE = "The paper prints no parameter counts."

ASSUMED_SIZE_NOTE = "The size of the vocabulary is assumed."

UNROLLED_NOTE = (
    "`relative_training_time` is that of a decoder unrolled step by step; this package "
    "runs a scan instead."
)


def published(variant: str, corpus_name: str) -> PublishedFigures:
    """The paper's figures for a variant on a corpus."""
    corpus = CORPORA[corpus_name]
    figures: dict[str, Any] = {}
    if variant in corpus.scores:
        bleu, ter = corpus.scores[variant]
        figures |= {"bleu": {corpus.direction: bleu}, "ter": {corpus.direction: ter}}
    if corpus_name == "wmt16-ro-en":
        figures["relative_training_time"] = TRAINING_TIME.get(variant)
        if variant in DEVELOPMENT:
            bleu, ter = DEVELOPMENT[variant]
            figures["dev_bleu"] = {corpus.direction: bleu}
            figures["dev_ter"] = {corpus.direction: ter}
    return PublishedFigures(**figures)


def notes(variant: str, corpus_name: str) -> str:
    """Notes on the figures."""
    best = CORPORA[corpus_name].best
    parts = [COUNTS_NOTE, f"The best BLEU of others in its Table 2 is {best}."]
    if corpus_name != "wmt16-ro-en":
        parts.append(ASSUMED_SIZE_NOTE)
    elif variant in TRAINING_TIME and variant != "baseline":
        parts.append(UNROLLED_NOTE)
    parts.append(TRAINING_NOTE)
    return " ".join(parts)


def preset(variant: str, corpus_name: str) -> Preset:
    """The preset of a variant on a corpus."""
    corpus = CORPORA[corpus_name]
    return Preset(
        name=f"rosendahl2021/{variant}/{corpus_name}",
        paper=PAPER,
        architecture=VARIANTS[variant],
        options={
            **BASE,
            "vocabulary_size": corpus.vocabulary_size,
            "dropout": corpus.dropout,
            "feed_forward_dropout": corpus.dropout,
            "attention": {"dropout": corpus.dropout, "kernel_initializer": FAN_IN},
            "normalization": "pre",
            "softmax_bias": True,
        },
        training=TrainingSettings(
            schedule=layer_config("LinearDecay", initial=1e-4, final=1e-4, steps=STEPS),
            batch_tokens=2 * 9600,
            steps=STEPS,
            label_smoothing=0.1,
            beta_2=0.999,
            epsilon=1e-8,
            beam_size=12,
            vocabulary=corpus.vocabulary,
            metric=f"case-sensitive SacreBLEU, TERCom's TER; {corpus.test}",
        ),
        published=published(variant, corpus_name),
        notes=notes(variant, corpus_name),
    )


for _corpus_name, _corpus in CORPORA.items():
    for _variant in VARIANTS:
        if _variant in _corpus.scores or _corpus_name == "wmt16-ro-en":
            register(preset(_variant, _corpus_name))
