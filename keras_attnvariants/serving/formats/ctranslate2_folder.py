"""Export of models to CTranslate2."""

import os
from pathlib import Path
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_attnvariants.attention import DotProductAttention
from keras_attnvariants.backend.private import nested_layers
from keras_attnvariants.data import Tokenizer
from keras_attnvariants.models import Transformer
from keras_attnvariants.models.positions import SinusoidalPositions
from keras_attnvariants.models.transfer import by_path
from keras_attnvariants.serving.exporting import check_reads_texts
from keras_attnvariants.serving.formats import write_tokenizers
from keras_attnvariants.utils.checks import check_choice
from keras_attnvariants.utils.folders import check_new
from keras_attnvariants.utils.folders import new_folder
from keras_attnvariants.utils.machine import check_extra

QUANTIZATIONS = ("float32", "float16", "int8")


def export_ctranslate2(
    model: keras.Model,
    tokenizer: Tokenizer,
    path: str | os.PathLike[str],
    *,
    quantization: str = "float32",
) -> Path:
    """Writes a folder that CTranslate2 translates with.

    It contains the model, its vocabularies and its SentencePiece tokenizers. Needs the
    extra `ctranslate2`.

    Args:
        model: a `Transformer` with learned attention throughout, not quantized.
        tokenizer: its tokenizer.
        path: the folder, which must not exist.
        quantization: how weights are stored: `"float32"`, `"float16"` or `"int8"`.

    Returns:
        `path`. The folder appears complete or not at all.

    Raises:
        ValueError: CTranslate2 does not support a layer, which the message names; or
            the extra is not installed.
        FileExistsError: the folder exists.
    """
    path = check_new(path)
    check_extra("This export", "ctranslate2", ("ctranslate2",))
    check_choice("quantization", quantization, QUANTIZATIONS)
    check_reads_texts(model, "CTranslate2 folders")
    check_supported(model)
    from keras_attnvariants.serving.formats.ctranslate2_spec import ACTIVATIONS
    from keras_attnvariants.serving.formats.ctranslate2_spec import transformer_spec

    config = model.get_config()
    target = words(tokenizer.target, model.vocabulary_size)
    if config["activation"] not in ACTIVATIONS:
        refuse(f"the activation {config['activation']!r} of feed-forward layers")
    spec = transformer_spec(
        named_weights(model),
        (len(model.encoder_blocks), len(model.decoder_blocks)),
        model.encoder_blocks[0].self_attention.num_heads,
        words(tokenizer, model.source_vocabulary_size),
        target,
        pre_norm=config["normalization"] == "pre",
        activation=config["activation"],
        scale=model.embeddings.scale,
    )
    spec.config.unk_token = tokenizer.pieces[tokenizer.unk_id]
    spec.config.bos_token = spec.config.decoder_start_token = target[model.bos_id]
    spec.config.eos_token = target[model.eos_id]
    spec.config.add_source_eos = config.get("source_eos", False)
    spec.validate()
    spec.optimize(None if quantization == "float32" else quantization)
    with new_folder(path, replace=False) as draft:
        spec.save(str(draft.path))
        write_tokenizers(draft, tokenizer)
    return path


def check_supported(model: Any) -> None:
    """Raises `ValueError` unless CTranslate2 supports all layers of a model."""
    if not isinstance(model, Transformer):
        refuse(type(model).__name__)
    if model.quantization is not None:
        raise ValueError(
            "CTranslate2 needs a model that is not quantized, and quantizes it itself. "
            f"Received: a model quantized to {model.quantization}"
        )
    if type(model.embeddings.positions) is not SinusoidalPositions:
        refuse(type(model.embeddings.positions).__name__)
    heads = getattr(model.encoder_blocks[0].self_attention, "num_heads", None)
    for block in (*model.encoder_blocks, *model.decoder_blocks):
        for name in ("self_attention", "cross_attention", "feed_forward"):
            if name == "cross_attention" and not block.is_causal:
                continue  # of an encoder
            layer, place = getattr(block, name), f"{block.name} {name}"
            if layer is None:
                refuse(f"{place} is left out")
            if name == "feed_forward":
                continue
            if type(layer) is not DotProductAttention:
                refuse(f"{place} is {type(layer).__name__}")
            width = model.hidden_dim // layer.num_heads
            sizes = layer.num_heads, layer.head_key_dim, layer.head_dim
            if sizes != (heads, width, width):
                refuse(
                    "{} has {} heads, keys of {} and values of {}".format(place, *sizes)
                )


def refuse(found: str) -> None:
    """Raises the error about something that CTranslate2 does not support."""
    raise ValueError(
        "CTranslate2 supports only Transformers with learned attention, sinusoidal "
        "positions and feed-forward layers in every block (ONNX supports all models). "
        f"Received: {found}"
    )


def named_weights(model: Transformer) -> dict[str, np.ndarray]:
    """The weights of a model by name, see `transformer_spec`."""
    positions: Any = model.embeddings.positions
    found = by_path(model.weights) | {"positions": positions.table}
    for layer in nested_layers(model):
        if getattr(layer, "lora_enabled", False):
            # The attribute, not the variable: it includes the weights of LoRA.
            place = layer.path.partition("/")[2]
            found[f"{place}/kernel"] = layer.kernel
    return {k: np.asarray(ops.convert_to_numpy(v), "float32") for k, v in found.items()}


def words(tokenizer: Tokenizer, count: int) -> list[str]:
    """The pieces of a tokenizer, and names for the other rows of a larger table."""
    pieces = tokenizer.pieces
    return pieces + [f"<unused {n}>" for n in range(len(pieces), count)]
