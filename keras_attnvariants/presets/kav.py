"""Our own presets: variants of every family, in sizes that train on a CPU.

Their sizes and settings are in `kav.toml`. The settings are starting points. The
presets have no published figures; docs/RESULTS.md has figures that we measured.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from keras_attnvariants.models import Seq2SeqLSTM

# Importing these modules registers the presets that ours refer to.
from keras_attnvariants.presets import cs287 as _cs287  # noqa: F401
from keras_attnvariants.presets import loem2022 as _loem2022  # noqa: F401
from keras_attnvariants.presets import nguyen2018 as _nguyen2018  # noqa: F401
from keras_attnvariants.presets import rosendahl2021 as _rosendahl2021  # noqa: F401
from keras_attnvariants.presets import you2020 as _you2020  # noqa: F401
from keras_attnvariants.presets.papers import read_toml
from keras_attnvariants.presets.preset import Preset
from keras_attnvariants.presets.preset import TrainingSettings
from keras_attnvariants.presets.preset import layer_config
from keras_attnvariants.presets.preset import learned_attention
from keras_attnvariants.presets.registry import get
from keras_attnvariants.presets.registry import register
from keras_attnvariants.presets.you2020 import INITIALIZERS

OURS = read_toml("kav")

# The published preset whose architecture each of ours has.
PUBLISHED: dict[str, str] = OURS["published"]

# The presets for each corpus, whose name may end with a direction.
BY_CORPUS: dict[str, list[str]] = {"multi30k": [*PUBLISHED], **OURS["presets"]}

# Self-attention that no preset of a paper has: its class, and further arguments of the
# layers in the decoder.
SELF_ATTENTION: dict[str, tuple[str, dict[str, Any]]] = {
    "alibi": ("AlibiAttention", {}),
    "relative-bias": ("RelativeBiasAttention", {"bidirectional": False}),
    "linear": ("LinearAttention", {}),
}


def own_architecture(name: str, num_heads: int, **sizes: Any) -> dict[str, Any]:
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

    Our models differ only in attention. The exceptions are those of the CS287 report,
    which keep every published setting but sizes, dropout and vocabulary.
    """
    sizes = OURS["sizes"][corpus]
    if model.name.startswith("cs287/"):
        chosen = {**sizes, **(OURS["lstm_sizes"] if model.model is Seq2SeqLSTM else {})}
        known = {key: chosen[key] for key in chosen if key in model.options}
        one = {"source_vocabulary_size": None, "dropout": sizes["dropout"]}
        return {**model.options, **known, **one}
    # Post-normalization needs a long warm-up, for which short trainings have no time.
    ours = {"normalization": "pre", "length_ratio": 1.0, "attention": INITIALIZERS}
    return {**sizes, **{key: ours[key] for key in ours if key in model.options}}


def in_encoder(
    architecture: Callable[..., dict[str, Any]], **options: Any
) -> dict[str, Any]:
    """An architecture whose decoder has learned attention.

    Args:
        architecture: maps `options` to the arguments of a `Transformer`.
        **options: those of the architecture.
    """
    learned = learned_attention(options["num_heads"], **INITIALIZERS)
    return {**architecture(**options), "decoder_attention": learned}


def preset(name: str, corpus: str) -> Preset:
    """A preset with the architecture of a published one, in our size for a corpus.

    For tasks other than translation, only the encoder has this architecture.

    Args:
        name: key of `PUBLISHED`.
        corpus: key of `BY_CORPUS`.
    """
    size, _, _ = corpus.partition("-")
    model, task = get(PUBLISHED[name]), OURS["tasks"].get(size)
    architecture = model.architecture
    return Preset(
        name=f"kav/{name}/{corpus}",
        paper=OURS["paper"],
        architecture=partial(in_encoder, architecture) if task else architecture,
        options=options(model, size),
        training=TrainingSettings(**OURS["training"][size]),
        notes=f"Our own, after {model.name}. The settings are a starting point.",
        model=model.model,
        task=task or "translation",
    )


for _corpus, _names in BY_CORPUS.items():
    for _name in _names:
        register(preset(_name, _corpus))
for _name in SELF_ATTENTION:
    register(
        replace(
            preset("base", "multi30k"),
            name=f"kav/{_name}/multi30k",
            architecture=partial(own_architecture, _name),
            notes="Our own: kav/base with another layer as all self-attention, and "
            "with its sinusoidal positions. The settings are a starting point.",
        )
    )
