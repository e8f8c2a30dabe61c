"""Our own presets: variants of every family, in sizes that train on a CPU.

The settings are starting points. They have no published figures; docs/RESULTS.md has
those that we measured.
"""

from dataclasses import replace
from functools import partial
from typing import Any

from keras_attnvariants.models import Seq2SeqLSTM

# Importing them registers the presets that ours refer to.
from keras_attnvariants.presets import cs287 as _cs287  # noqa: F401
from keras_attnvariants.presets import loem2022 as _loem2022  # noqa: F401
from keras_attnvariants.presets import nguyen2018 as _nguyen2018  # noqa: F401
from keras_attnvariants.presets import rosendahl2021 as _rosendahl2021  # noqa: F401
from keras_attnvariants.presets import you2020 as _you2020  # noqa: F401
from keras_attnvariants.presets.preset import Preset
from keras_attnvariants.presets.preset import TrainingSettings
from keras_attnvariants.presets.preset import layer_config
from keras_attnvariants.presets.registry import get
from keras_attnvariants.presets.registry import register
from keras_attnvariants.presets.you2020 import INITIALIZERS

PAPER = "none: configurations of this project"

SIZES = {
    # The tiny Transformer of the Multi30k literature. Captions have few words, and with
    # a small vocabulary most of the time is spent in the layers.
    "multi30k": {
        "vocabulary_size": 2000,
        "num_layers": 4,
        "hidden_dim": 128,
        "intermediate_dim": 256,
        "num_heads": 4,
        "dropout": 0.2,
    },
    "bible": {
        "vocabulary_size": 4000,
        "num_layers": 3,
        "hidden_dim": 256,
        "intermediate_dim": 512,
        "num_heads": 4,
        "dropout": 0.05,
    },
}
LSTM_SIZES = {"embedding_dim": 128, "hidden_dim": 256}


def training(
    corpus: str, peak: float, warmup_steps: int, steps: int
) -> TrainingSettings:
    """Training with a linear warm-up to the peak rate and cosine decay to 2 % of it."""
    schedule = {
        "initial_learning_rate": 0.0,
        "decay_steps": steps - warmup_steps,
        "alpha": 0.02,
        "warmup_target": peak,
        "warmup_steps": warmup_steps,
    }
    return TrainingSettings(
        schedule={"class_name": "CosineDecay", "config": schedule},
        batch_tokens=2048,
        steps=steps,
        label_smoothing=0.1,
        averaged_checkpoints=4,
        vocabulary=f"joint SentencePiece, {SIZES[corpus]['vocabulary_size']:,} tokens",
    )


TRAINING = {
    "multi30k": training("multi30k", peak=3e-3, warmup_steps=1000, steps=24000),
    "bible": training("bible", peak=1.5e-3, warmup_steps=400, steps=5000),
}

# The published preset whose architecture each of ours has.
PUBLISHED = {
    "base": "you2020/base/iwslt16-en-de",
    "hc-sa": "you2020/hc-sa/iwslt16-en-de",
    "hc-all": "you2020/hc-all/iwslt16-en-de",
    "sh-x": "you2020/sh-x/iwslt16-en-de",
    # Cross-attention with each of the nine recurrences.
    "context": "rosendahl2021/context/wmt16-ro-en",
    "weights": "rosendahl2021/weights/wmt16-ro-en",
    "accumulated-weights": "rosendahl2021/accumulated-weights/wmt16-ro-en",
    "expanded-shared": "rosendahl2021/expanded-shared/wmt16-ro-en",
    "expanded-full": "rosendahl2021/expanded-full/wmt16-ro-en",
    "expanded-head": "rosendahl2021/expanded-head/wmt16-ro-en",
    "expanded-head-key": "rosendahl2021/expanded-head-key/wmt16-ro-en",
    "accumulated-energies": "rosendahl2021/accumulated-energies/wmt16-ro-en",
    "subtracted-weights": "rosendahl2021/subtracted-weights/wmt16-ro-en",
    # Phrases of one and two tokens, in every structure and with both scorings.
    "homogeneous-conv-kv": "nguyen2018/homogeneous-conv-kv-44/wmt16-en-de",
    "homogeneous-query-k": "nguyen2018/homogeneous-query-k-44/wmt16-en-de",
    "heterogeneous-conv-kv": "nguyen2018/heterogeneous-conv-kv-12/wmt16-en-de",
    "heterogeneous-query-k": "nguyen2018/heterogeneous-query-k-12/wmt16-en-de",
    "interleaved-conv-kv": "nguyen2018/interleaved-conv-kv/wmt16-en-de",
    "interleaved-query-k": "nguyen2018/interleaved-query-k/wmt16-en-de",
    # N-grams, attention to the same window, and n-grams below learned attention.
    "neural-ngram": "loem2022/neural-ngram/wmt16-en-de",
    "local-attention": "loem2022/local-attention/wmt16-en-de",
    "concatenated-ngram": "loem2022/concatenated-ngram/wmt16-en-de",
    "lowest-2-ngram": "loem2022/lowest-2-ngram/wmt16-en-de",
    # Models of other kinds.
    "lstm": "cs287/seq2seq-attn/iwslt16-de-en",
    "lstm-no-attention": "cs287/seq2seq/iwslt16-de-en",
    "megatron": "cs287/megatron/iwslt16-de-en",
}

# Those that have a preset for each corpus; the others have one for Multi30k.
MAIN = ("base", "hc-sa", "hc-all", "sh-x")

# Self-attention that none of the papers' presets have: its class, and further arguments
# of those in the decoder.
SELF_ATTENTION: dict[str, tuple[str, dict[str, Any]]] = {
    "alibi": ("AlibiAttention", {}),
    "relative-bias": ("RelativeBiasAttention", {"bidirectional": False}),
    "linear": ("LinearAttention", {}),
}


def architecture(name: str, num_heads: int, **sizes: Any) -> dict[str, Any]:
    """The base architecture, with a layer of `SELF_ATTENTION` as its self-attention.

    Args:
        name: key of `SELF_ATTENTION`.
        num_heads: number of heads per attention layer.
        **sizes: further arguments of the base architecture.
    """
    class_name, in_decoder = SELF_ATTENTION[name]
    options = {"num_heads": num_heads, **INITIALIZERS}
    return {
        **get(PUBLISHED["base"]).architecture(num_heads=num_heads, **sizes),
        "encoder_attention": layer_config(class_name, **options),
        "decoder_attention": layer_config(class_name, **options, **in_decoder),
    }


def options(model: Preset, corpus: str) -> dict[str, Any]:
    """The options of a published preset in our size for a corpus.

    Attention is the only difference between our models. Those of the report keep every
    published setting but sizes, dropout and vocabulary.
    """
    sizes = SIZES[corpus]
    if model.name.startswith("cs287/"):
        chosen = {**sizes, **(LSTM_SIZES if model.model is Seq2SeqLSTM else {})}
        known = {key: chosen[key] for key in chosen if key in model.options}
        one = {"source_vocabulary_size": None, "dropout": sizes["dropout"]}
        return {**model.options, **known, **one}
    # Post-normalization needs a long warm-up, for which short trainings have no time.
    ours = {"normalization": "pre", "length_ratio": 1.0, "attention": INITIALIZERS}
    return {**sizes, **{key: ours[key] for key in ours if key in model.options}}


def preset(name: str, corpus: str) -> Preset:
    """A preset with the architecture of a published one, in our size for a corpus."""
    model = get(PUBLISHED[name])
    return Preset(
        name=f"kav/{name}/{corpus}",
        paper=PAPER,
        architecture=model.architecture,
        options=options(model, corpus),
        training=TRAINING[corpus],
        notes=f"Our own, after {model.name}. The settings are a starting point.",
        model=model.model,
    )


for _name in PUBLISHED:
    register(preset(_name, "multi30k"))
for _name in MAIN:
    register(preset(_name, "bible"))
for _name in SELF_ATTENTION:
    register(
        replace(
            preset("base", "multi30k"),
            name=f"kav/{_name}/multi30k",
            architecture=partial(architecture, _name),
            notes="Our own: kav/base with another layer as all self-attention, and "
            "with its sinusoidal positions. The settings are a starting point.",
        )
    )
