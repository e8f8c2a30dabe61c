"""Models of Marian: an `.npz` file of weights with its configuration, vocabularies."""

import os
from collections.abc import Mapping
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from keras_attnvariants.data import sentencepiece_models
from keras_attnvariants.foreign.conversion import SUBWORDS
from keras_attnvariants.foreign.conversion import ForeignArrays
from keras_attnvariants.foreign.conversion import ForeignModel
from keras_attnvariants.foreign.vocabulary import ForeignVocabulary
from keras_attnvariants.foreign.vocabulary import tokens_by_number
from keras_attnvariants.utils.files import read_file
from keras_attnvariants.utils.files import read_npz
from keras_attnvariants.utils.machine import check_extra

CONFIG = "special:model.yml"

# Options of Marian, and the values that layers here support. The first value is the
# default of an option that a file omits.
SUPPORTED: dict[str, tuple[Any, ...]] = {
    "type": ("transformer",),
    "transformer-preprocess": ("",),
    "transformer-postprocess": ("dan", "an"),
    "transformer-postprocess-emb": ("d", ""),
    "transformer-postprocess-top": ("",),
    "transformer-decoder-autoreg": ("self-attention",),
    "transformer-no-projection": ("false",),
    "transformer-ffn-depth": ("2",),
    "transformer-decoder-ffn-depth": ("0", "2"),
    "transformer-train-positions": ("false",),
    "transformer-train-position-embeddings": ("false",),
    "transformer-tied-layers": ([], ""),
    "transformer-ffn-activation": ("swish", "relu", "gelu"),
    "lemma-dim-emb": ("0",),
    "ulr": ("false",),
    "right-left": ("false",),
}

# Marian's gelu is swish(1.702 x): the weights around it absorb the factor.
GELU = 1.702

# Their names for our layers in a block, and for our weights in a layer.
LAYERS = {
    "self_attention/query": "self_{}q",
    "self_attention/key": "self_{}k",
    "self_attention/value": "self_{}v",
    "self_attention/output": "self_{}o",
    "cross_attention/query": "context_{}q",
    "cross_attention/key": "context_{}k",
    "cross_attention/value": "context_{}v",
    "cross_attention/output": "context_{}o",
    "feed_forward/intermediate": "ffn_{}1",
    "feed_forward/output": "ffn_{}2",
    "self_residual/norm": "self_Wo_ln_{}",
    "cross_residual/norm": "context_Wo_ln_{}",
    "ff_residual/norm": "ffn_ffn_ln_{}",
}
KINDS = {"kernel": "W", "bias": "b", "gamma": "scale", "beta": "bias"}


def read_marian(
    folder: str | os.PathLike[str],
    weights: str | os.PathLike[str] | None = None,
    vocabularies: Sequence[str | os.PathLike[str]] = (),
    subwords: Sequence[str | os.PathLike[str]] = (),
) -> ForeignModel:
    """Reads a Transformer of Marian.

    Args:
        folder: folder with the files.
        weights: the `.npz` file; by default the only one in the folder.
        vocabularies: one for both sides, or those of sources and of targets: `.yml`, or
            `.spm` of Marian's own SentencePiece. By default the only `*vocab*.yml` in
            the folder or, if there is none, the only `.spm`.
        subwords: with `.yml`, the SentencePiece models of sources and of targets, or
            one for both; by default `source.spm` and `target.spm`.

    Raises:
        OSError: a file is missing.
        ValueError: a file is damaged, the files do not fit together, or this package
            lacks a layer of the model.
    """
    folder = Path(folder)
    path = Path(weights) if weights else only(folder, "--weights", "*.npz")
    found = read_npz(path.resolve())
    config = read_config(found.pop(CONFIG, None), path)
    arrays = ForeignArrays(found, path.name)
    source, target, models = read_vocabularies(folder, vocabularies, subwords)
    if "Wemb" in arrays:
        source_table = target_table = arrays.take("Wemb")
    else:
        source_table = arrays.take("encoder_Wemb")
        target_table = arrays.take("decoder_Wemb")
    activation = config["transformer-ffn-activation"]
    return ForeignModel(
        arrays=arrays,
        block_weight=weight_around_gelu if activation == "gelu" else block_weight,
        source_table=source_table,
        target_table=target_table,
        output=take_output(arrays),
        bias=arrays.take_bias("decoder_ff_logit_out_b", len(target_table)),
        source=source,
        target=target,
        subwords=models,
        heads=(number(config, "transformer-heads"),) * 2,
        endpoint=True,
        options={
            "num_layers": number(config, "enc-depth"),
            "num_decoder_layers": number(config, "dec-depth"),
            "intermediate_dim": number(config, "transformer-dim-ffn"),
            "activation": "relu" if activation == "relu" else "silu",
        },
    )


def read_vocabularies(
    folder: Path,
    vocabularies: Sequence[str | os.PathLike[str]],
    subwords: Sequence[str | os.PathLike[str]],
) -> tuple[ForeignVocabulary, ForeignVocabulary, list[bytes]]:
    """The vocabularies of both sides, one object if they are shared, and their models.

    See `read_marian` for arguments and errors.
    """
    files = pair("--vocabulary", vocabularies) or (
        [only(folder, "--vocabulary", "*vocab*.y*ml", "*.spm")] * 2
    )
    models = pair("--subwords", subwords) or [folder / name for name in SUBWORDS]
    if all(file.suffix == ".spm" for file in files):
        if subwords:
            raise ValueError(
                "A vocabulary that is a SentencePiece model needs no --subwords. "
                f"Received: {files[0]}"
            )
        models = files
    source = target = read_vocabulary(files[0])
    if files[1] != files[0]:
        target = read_vocabulary(files[1])
    return source, target, [read_file(file.resolve()) for file in models]


def take_output(arrays: ForeignArrays) -> np.ndarray | None:
    """The output matrix `[width, V]`; `None` if it is the embedding matrix."""
    if "decoder_ff_logit_out_Wt" in arrays:
        return arrays.take("decoder_ff_logit_out_Wt").T
    old = "decoder_ff_logit_out_W"
    return arrays.take(old) if old in arrays else None


def block_weight(arrays: ForeignArrays, name: str) -> np.ndarray:
    """A weight of a block: `"encoder_0/self_residual/norm/beta"`, ….

    Their vectors are matrices of one row.
    """
    block, layer, part, kind = name.split("/")
    stack, number = block.split("_")
    theirs = LAYERS[f"{layer}/{part}"].format(KINDS[kind])
    array = arrays.take(f"{stack}_l{int(number) + 1}_{theirs}")
    return array if kind == "kernel" else array.reshape(-1)


def weight_around_gelu(arrays: ForeignArrays, name: str) -> np.ndarray:
    """`block_weight` for gelu, computed here as swish with rescaled weights."""
    array = block_weight(arrays, name)
    if "/intermediate/" in name:
        return array * GELU
    return array / GELU if name.endswith("feed_forward/output/kernel") else array


def only(folder: Path, option: str, *patterns: str) -> Path:
    """The one file that matches the first pattern with any match.

    Raises:
        FileNotFoundError: there is none, or several.
    """
    matches = (sorted(folder.glob(pattern)) for pattern in patterns)
    found = next(filter(None, matches), [])
    if len(found) == 1:
        return found[0]
    names = ", ".join(file.name for file in found) or "none"
    raise FileNotFoundError(
        f"The folder must have one file {' or '.join(patterns)}, or {option} must say "
        f"which. Received: {names} in {folder}"
    )


def pair(option: str, files: Sequence[str | os.PathLike[str]]) -> list[Path]:
    """The files of sources and of targets; one file may be for both.

    Raises:
        ValueError: there are more.
    """
    if len(files) > 2:
        raise ValueError(
            f"`{option}` must be given once, or for sources and targets. "
            f"Received: {len(files)} files"
        )
    paths = [Path(file) for file in files]
    return paths * 2 if len(paths) == 1 else paths


def read_yaml(text: bytes, file: str) -> dict[str, Any]:
    """A YAML mapping with all scalars as texts.

    Raises:
        ValueError: it is not a mapping.
    """
    check_extra("Reading models of Marian", "import", ("yaml",))
    import yaml

    try:
        # Without types: `no` and `1e3` are tokens. In C if PyYAML was built with it.
        loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
        found = yaml.load(text, Loader=loader)  # noqa: S506
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        found = " ".join(str(error).split())
    if not isinstance(found, dict):
        raise ValueError(
            f"{file} must be YAML, names with values. Received: {found!r:.80}"
        )
    return found


def read_config(written: np.ndarray | None, path: Path) -> Mapping[str, Any]:
    """The options that a model was trained with.

    Args:
        written: the bytes of the YAML in the file of weights.
        path: the file.

    Raises:
        ValueError: there are none, or one needs layers that this package lacks.
    """
    if written is None or written.dtype.itemsize != 1:
        raise ValueError(
            f"{path.name} must be a model of Marian, with {CONFIG}. Received: {path}"
        )
    config = read_yaml(written.tobytes().rstrip(b"\0"), CONFIG)
    for option, values in SUPPORTED.items():
        found = config.setdefault(option, values[0])
        if found not in values:
            known = " or ".join(repr(value) for value in values)
            raise ValueError(
                "The model has layers that this package does not have: Marian's "
                f"option {option} must be {known}. Received: {found!r}"
            )
    return config


def number(config: Mapping[str, Any], option: str) -> int:
    """The value of an option that is a number.

    Raises:
        ValueError: it is not a number.
    """
    value = config.get(option)
    if not isinstance(value, str) or not value.isdecimal():
        raise ValueError(
            f"Marian's option {option} must be a number. Received: {value!r}"
        )
    return int(value)


def read_vocabulary(path: Path) -> ForeignVocabulary:
    """The tokens in a file, `.yml` or `.spm`."""
    data = read_file(path.resolve())
    if path.suffix != ".spm":
        found = read_yaml(data, path.name)
        return ForeignVocabulary(tokens_by_number(found, path))
    model = sentencepiece_models.read(data)
    pieces = [piece.piece for piece in model.pieces]
    trained = model.trainer_spec
    return ForeignVocabulary(
        pieces, unknown=pieces[trained.unk_id], end=pieces[trained.eos_id]
    )
