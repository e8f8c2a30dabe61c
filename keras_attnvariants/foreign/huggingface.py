"""MarianMT models of Hugging Face, as `save_pretrained` writes them."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from keras_attnvariants.foreign.conversion import ACTIVATIONS
from keras_attnvariants.foreign.conversion import SUBWORDS
from keras_attnvariants.foreign.conversion import ForeignArrays
from keras_attnvariants.foreign.conversion import ForeignModel
from keras_attnvariants.foreign.vocabulary import ForeignVocabulary
from keras_attnvariants.foreign.vocabulary import tokens_by_number
from keras_attnvariants.utils.checks import check_choice
from keras_attnvariants.utils.files import read_file
from keras_attnvariants.utils.files import read_json
from keras_attnvariants.utils.machine import check_extra

WEIGHTS, OLD_WEIGHTS = "model.safetensors", "pytorch_model.bin"
POSITIONS = "embed_positions.weight"

# Defaults of `MarianConfig`.
DEFAULTS: dict[str, Any] = {
    "activation_function": "gelu",
    "scale_embedding": False,
    "share_encoder_decoder_embeddings": True,
    "tie_word_embeddings": True,
    "dropout": 0.1,
    "max_position_embeddings": 1024,
}

# Options in old files that no layer here supports.
REFUSED = (
    "normalize_before",
    "normalize_embedding",
    "add_final_layer_norm",
    "add_bias_logits",
)

# Their names for our layers in a block, and for our weights in a layer.
LAYERS = {
    "self_attention/query": "self_attn.q_proj",
    "self_attention/key": "self_attn.k_proj",
    "self_attention/value": "self_attn.v_proj",
    "self_attention/output": "self_attn.out_proj",
    "cross_attention/query": "encoder_attn.q_proj",
    "cross_attention/key": "encoder_attn.k_proj",
    "cross_attention/value": "encoder_attn.v_proj",
    "cross_attention/output": "encoder_attn.out_proj",
    "feed_forward/intermediate": "fc1",
    "feed_forward/output": "fc2",
    "self_residual/norm": "self_attn_layer_norm",
    "cross_residual/norm": "encoder_attn_layer_norm",
    "ff_residual/norm": "final_layer_norm",
}
KINDS = {"kernel": "weight", "gamma": "weight", "bias": "bias", "beta": "bias"}


def block_weight(arrays: ForeignArrays, name: str) -> np.ndarray:
    """A weight of a block: `"encoder_0/self_residual/norm/beta"`, ….

    Their matrices are `[outputs, inputs]`.
    """
    block, layer, part, kind = name.split("/")
    stack, number = block.split("_")
    theirs = LAYERS[f"{layer}/{part}"]
    array = arrays.take(f"model.{stack}.layers.{number}.{theirs}.{KINDS[kind]}")
    return array.T if kind == "kernel" else array


def read_huggingface(folder: str | os.PathLike[str]) -> ForeignModel:
    """Reads MarianMT, such as a model of OPUS-MT, from a folder of Hugging Face.

    Args:
        folder: a folder with `config.json`, `model.safetensors`, `source.spm`,
            `target.spm`, `vocab.json` and, if targets have a separate vocabulary,
            `target_vocab.json`.

    Raises:
        OSError: a file is missing.
        ValueError: a file is damaged, the files do not fit together, or the model is
            not MarianMT with learned attention and fixed positions.
    """
    # Files in the cache of Hugging Face are links.
    folder = Path(folder)
    config = DEFAULTS | read_settings(folder / "config.json")
    check_config(config)
    arrays = read_arrays(folder)
    sides = ["model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"]
    head = "lm_head.weight"
    tied = [head] if config["tie_word_embeddings"] else []
    if config["share_encoder_decoder_embeddings"]:
        source_table = target_table = arrays.take("model.shared.weight", *sides, *tied)
    else:
        source_table = arrays.take(sides[0])
        target_table = arrays.take(sides[1], *tied)
    source, target = read_vocabularies(folder, config)
    options = {
        "num_layers": config["encoder_layers"],
        "num_decoder_layers": config["decoder_layers"],
        "intermediate_dim": config["encoder_ffn_dim"],
        "activation": ACTIVATIONS[config["activation_function"]],
        "embedding_scale": config["scale_embedding"],
        "dropout": config["dropout"],
        "search_settings": search_settings(folder, config),
    }
    return ForeignModel(
        arrays=arrays,
        block_weight=block_weight,
        source_table=source_table,
        target_table=target_table,
        output=None if tied else arrays.take(head).T,
        bias=arrays.take_bias("final_logits_bias", len(target_table)),
        source=source,
        target=target,
        subwords=[read_file((folder / name).resolve()) for name in SUBWORDS],
        heads=(config["encoder_attention_heads"], config["decoder_attention_heads"]),
        endpoint=False,
        options=options,
        max_length=config["max_position_embeddings"],
    )


def read_settings(path: Path) -> dict[str, Any]:
    """The settings in a file by name; those that are null are left out.

    Raises:
        ValueError: the file contains something else.
    """
    values = read_json(path.resolve())
    if not isinstance(values, dict):
        raise ValueError(f"It must hold settings by name. Received: {path}")
    return {name: value for name, value in values.items() if value is not None}


def check_config(config: Mapping[str, Any]) -> None:
    """Raises `ValueError` unless it is MarianMT with layers that this package has."""
    check_choice("model_type", config.get("model_type"), ["marian"])
    check_choice("activation_function", str(config["activation_function"]), ACTIVATIONS)
    for name in REFUSED:
        if config.get(name):
            raise ValueError(
                f"config.json asks for `{name}`, which no model of this package has. "
                f"Received: {config[name]}"
            )
    needed = [
        "pad_token_id",
        "eos_token_id",
        "decoder_start_token_id",
        "max_position_embeddings",
    ]
    for stack in ("encoder", "decoder"):
        needed += [f"{stack}_{x}" for x in ("layers", "attention_heads", "ffn_dim")]
    if missing := [name for name in needed if not isinstance(config.get(name), int)]:
        raise ValueError(
            f"config.json must have `{missing[0]}`, a number. "
            f"Received: {config.get(missing[0])}"
        )
    if config["encoder_ffn_dim"] != config["decoder_ffn_dim"]:
        raise ValueError(
            "`encoder_ffn_dim` and `decoder_ffn_dim` must be equal. Received: "
            f"{config['encoder_ffn_dim']}, {config['decoder_ffn_dim']}"
        )


def read_arrays(folder: Path) -> ForeignArrays:
    """The weights in a folder."""
    path = (folder / WEIGHTS).resolve()
    if not path.is_file():
        raise FileNotFoundError(
            f"The folder must have {WEIGHTS}, which Transformers makes of "
            f"{OLD_WEIGHTS}: MarianMTModel.from_pretrained(FOLDER).save_pretrained("
            f"FOLDER). Received: {folder}"
        )
    check_extra("Reading .safetensors", "import", ("safetensors",))
    import safetensors.numpy

    try:
        found = safetensors.numpy.load(read_file(path))
    # Crafted files raise errors of nearly every kind.
    except Exception as error:
        raise ValueError(
            f"{WEIGHTS} is cut short or does not hold NumPy arrays ({error}). "
            f"Received: {path}"
        ) from error
    # Positions in MarianMT are always sinusoids, which our models compute.
    kept = {name: x for name, x in found.items() if not name.endswith(POSITIONS)}
    return ForeignArrays(kept, WEIGHTS)


def read_vocabularies(
    folder: Path, config: Mapping[str, Any]
) -> tuple[ForeignVocabulary, ForeignVocabulary]:
    """The vocabularies of sources and of targets; one object if they are shared."""
    ids = {
        "end": config["eos_token_id"],
        "padding": config["pad_token_id"],
        "start": config["decoder_start_token_id"],
    }
    joint, own = folder / "vocab.json", folder / "target_vocab.json"
    tokens = targets = tokens_by_number(read_json(joint.resolve()), joint)
    if own.exists():
        targets = tokens_by_number(read_json(own.resolve()), own)
    for name, number in ids.items():
        if not 0 <= number < len(targets):
            raise ValueError(
                f"The token for {name} must be in the vocabulary of {len(targets):,}. "
                f"Received: {number}"
            )
    target = ForeignVocabulary(
        targets, **{name: targets[number] for name, number in ids.items()}
    )
    if not own.exists():
        return target, target
    padding = target.padding if target.padding in tokens else None
    return ForeignVocabulary(tokens, end=target.end, padding=padding), target


def search_settings(folder: Path, config: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of their beam search that exist here."""
    path = (folder / "generation_config.json").resolve()
    config = {**config, **(read_settings(path) if path.exists() else {})}
    names = {"beam_size": "num_beams", "length_penalty": "length_penalty"}
    return {ours: config[name] for ours, name in names.items() if config.get(name)}
