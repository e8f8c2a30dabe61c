"""Rosendahl, Herold, Petrick and Ney 2021: recurrent cross-attention.

A Transformer with one of nine recurrences in every cross-attention. What the paper
leaves open follows a later public configuration of the same group for Romanian:
pre-normalization, no biases in attention, a bias in the output projection, dropout
inside attention and feed-forward sub-layers, initializers of attention, settings of
Adam, beam size and vocabulary.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from keras_attnvariants.presets.preset import BASE
from keras_attnvariants.presets.preset import PLACES
from keras_attnvariants.presets.preset import Preset
from keras_attnvariants.presets.preset import PublishedFigures
from keras_attnvariants.presets.preset import TrainingSettings
from keras_attnvariants.presets.preset import layer_config
from keras_attnvariants.presets.preset import learned_attention
from keras_attnvariants.presets.preset import read_table
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
        options["recurrence"] = recurrence
        cross = layer_config("RecurrentCrossAttention", **options)
    return {**sizes, **dict.fromkeys(PLACES, plain), "cross_attention": cross}


# Size of the vocabulary, merges of the joint BPE, rate of all kinds of dropout, test
# set, and the best BLEU of others, from Table 2.
CORPORA = {
    "wmt16-ro-en": (19_093, "20,000", 0.2, "newstest2016", 34.5),
    "wmt18-tr-en": (20_000, "20,000", 0.3, "newstest2018", 20.2),
    "iwslt17-en-it": (8_000, "8,000", 0.3, "tst2010", 28.5),
}

# Tables 1 and 2. The variants are Equation 2, Equations 3 and 4, 5 to 8, 9, and 10. The
# training time is that of a checkpoint.
TABLES = {
    "wmt16-ro-en": """
        variant               bleu  ter   dev_bleu  dev_ter  relative_training_time
        baseline              34.2  53.5  35.7      51.4     1.0
        context               33.8  53.8  -         -        5.6
        weights               34.3  53.4  -         -        6.0
        accumulated-weights   34.2  53.4  -         -        6.1
        expanded-shared       34.0  53.6  35.9      51.1     7.5
        expanded-full         -     -     35.9      51.1     -
        expanded-head         -     -     35.7      51.5     -
        expanded-head-key     -     -     33.8      53.2     -
        accumulated-energies  34.2  53.2  -         -        5.4
        subtracted-weights    34.3  53.2  -         -        7.9
    """,
    "wmt18-tr-en": """
        variant               bleu  ter
        baseline              19.6  70.2
        context               19.5  70.3
        weights               19.8  70.2
        accumulated-weights   19.7  70.3
        expanded-shared       19.8  70.5
        accumulated-energies  19.6  70.2
        subtracted-weights    19.5  71.2
    """,
    "iwslt17-en-it": """
        variant               bleu  ter
        baseline              28.9  58.5
        context               28.9  58.3
        weights               29.1  58.0
        accumulated-weights   29.1  58.3
        expanded-shared       28.9  58.5
        accumulated-energies  28.7  58.7
        subtracted-weights    28.7  58.8
    """,
}

STEPS = 100_000

TRAINING_NOTE = (
    "The paper gives no schedule and no number of updates; the number of updates and "
    "the length penalty are assumed. Pre-normalization, label smoothing, the settings "
    "of Adam and a beam of 12 are those of a later configuration of its authors, which "
    "starts at the learning rate given here, multiplies it by 0.7 when the development "
    "score has not improved for 9 quarters of an epoch, accumulates the gradients of 3 "
    "batches, trains on up to 100 tokens per sentence, limits outputs to 3 times the "
    "length of the source, and draws all matrices with variance 1 / fan-in, also those "
    "of feed-forward sub-layers and embeddings. The paper's 9,600 tokens per batch are "
    "taken as those of one side; some of its recurrent models had 7,600. The weights "
    "with the best development score are kept."
)


def preset(variant: str, corpus: str, published: PublishedFigures) -> Preset:
    """The preset of a variant on a corpus."""
    vocabulary_size, merges, dropout, test, best = CORPORA[corpus]
    recurrence = None if variant == "baseline" else variant.replace("-", "_")
    notes = [
        "The paper prints no parameter counts.",
        f"The best BLEU of others in its Table 2 is {best}.",
    ]
    if corpus != "wmt16-ro-en":
        notes.append("The size of the vocabulary is assumed.")
    elif recurrence and published.relative_training_time:
        notes.append(
            "`relative_training_time` is that of a decoder unrolled step by step; this "
            "package runs a scan instead."
        )
    return Preset(
        name=f"rosendahl2021/{variant}/{corpus}",
        paper=PAPER,
        architecture=partial(architecture, recurrence),
        options={
            **BASE,
            "vocabulary_size": vocabulary_size,
            "dropout": dropout,
            "feed_forward_dropout": dropout,
            "attention": {"dropout": dropout, "kernel_initializer": FAN_IN},
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
            vocabulary=f"joint BPE, {merges} merges",
            metric=f"case-sensitive SacreBLEU, TERCom's TER; {test}",
        ),
        published=published,
        notes=" ".join([*notes, TRAINING_NOTE]),
    )


for _corpus, _table in TABLES.items():
    for _name, (_, _figures) in read_table(_table, _corpus).items():
        register(preset(_name, _corpus, _figures))
