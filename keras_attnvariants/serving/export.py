"""Writing a model as a SavedModel that translates text to text."""

import os
from collections.abc import Collection
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from keras_attnvariants import backend
from keras_attnvariants.data import Shortlist
from keras_attnvariants.data import Tokenizer
from keras_attnvariants.models import SearchSettings
from keras_attnvariants.serving.deployment import write_batching
from keras_attnvariants.serving.deployment import write_warm_up
from keras_attnvariants.serving.info import write_info
from keras_attnvariants.serving.inputs import Signature
from keras_attnvariants.serving.inputs import declare_shapes
from keras_attnvariants.serving.operators import operators
from keras_attnvariants.serving.operators import unservable
from keras_attnvariants.serving.options import Options
from keras_attnvariants.serving.precision import Precision
from keras_attnvariants.serving.precision import exact_model
from keras_attnvariants.serving.sentence_signatures import SentenceSignatures
from keras_attnvariants.serving.signatures import Signatures
from keras_attnvariants.serving.slimming import share_nodes
from keras_attnvariants.serving.versions import INFO
from keras_attnvariants.serving.versions import versions
from keras_attnvariants.utils.checks import check_integer
from keras_attnvariants.utils.files import read_json
from keras_attnvariants.utils.folders import new_folder
from keras_attnvariants.utils.locks import lock_folder

# What servers run unless a request names a signature.
DEFAULT = "serving_default"

# Searches of their own, which a graph holds on request.
LARGE_SIGNATURES = {"translate_with", "sample"}


def export(
    model: keras.Model,
    tokenizer: Tokenizer | None,
    path: str | os.PathLike[str],
    *,
    beam_size: int | None = None,
    length_penalty: float | None = None,
    n_best: int | None = None,
    max_batch: int = 64,
    max_characters: int = 4096,
    max_tokens: int | None = None,
    exact: bool = False,
    onednn: bool = False,
    packed: bool = False,
    shortlist: Shortlist | None = None,
    shortlist_width: int = 2_000,
    signatures: Collection[str] | None = None,
    version: int | None = None,
) -> Path:
    """Writes `path/<version>/`, a SavedModel that needs no Python of this package.

    Tokenisation, beam search and detokenisation are all in the graph. Signatures:

    | signature | in | out |
    |---|---|---|
    | `serving_default` | `text` `[B]` | `translations`, `scores`, `truncated`, `status`
        `[B]` |
    | `nbest` | `text` `[B]` | `translations`, `scores` `[B, N]`, `truncated`,
        `status` `[B]` |
    | `align` | `text` `[B]` | `translations`, `scores` `[B]`, `pieces`,
        `token_log_probs` `[B, T]`, `source_pieces` `[B, S]`, `alignments`
        `[B, T, S]`, `truncated`, `status` `[B]` |
    | `score` | `source`, `target` `[B]` | `log_probs` `[B]`, `token_log_probs`,
        `pieces` `[B, T]`, `lengths`, `truncated` `[B]` |
    | `translate_with` | `text`, `prefix`, `min_length`, `max_length`,
        `length_penalty`, `block_unknown`, `no_repeat_ngram` `[B]` | `translations`,
        `scores`, `log_probs`, `lengths`, `truncated`, `status` `[B]` |
    | `sample` | `text`, `temperature`, `top_k`, `top_p`, `seed` `[B]` | as
        `translate_with`, and `pieces`, `token_log_probs` `[B, T]` |
    | `translate_ids` | `source_ids` `[B, S]`, `lengths` `[B]` | `ids` `[B, T]`,
        `lengths`, `scores`, `truncated`, `status` `[B]` |

    `translate_with` and `sample` are searches of their own, which make the graph
    larger; they are written if `signatures` names them. For each sentence that has no
    wish they are sent -1 (integers), NaN (floats), or `""`.

    `translate_ids` uses stock TensorFlow operators only, and ignores what
    `source_ids` holds beyond `lengths`. The others need TensorFlow Text of
    the release that `assets.extra/model_info.json` states. The limits hold in the
    graph: a wrong shape and more than `max_batch` sentences are an error, longer texts
    are cut to whole characters and tokens and reported in `truncated`. A sentence that
    cannot be translated has an empty translation, and a `status` other than 0 says why
    (`keras_attnvariants.serving.Status`). Invalid UTF-8 is read as U+FFFD.

    Args:
        model: a step model, such as `keras_attnvariants.Transformer`.
        tokenizer: its tokenizer. With `None` the SavedModel has `translate_ids`
            alone, also as `serving_default`, and loads without TensorFlow Text.
        path: folder of all versions, as TensorFlow Serving watches it.
        beam_size, length_penalty: of the beam search; by default those of the model's
            `search_settings`.
        n_best: translations that `nbest` returns; by default `beam_size`.
        max_batch: sentences in a request, at most.
        max_characters: characters of a text that are read.
        max_tokens: tokens of a source or target that are read; by default 256, or
            what the model accepts if that is less.
        exact: whether to compute in float32 whatever the model does, so that the
            translation of a sentence does not depend on the others in its request.
            Models in float32 have that anyway.
        onednn: whether a model that is quantized to int8 multiplies 8-bit integers,
            by an operator of oneDNN. That is faster, but needs a server for Linux on
            x86-64, and a processor with AVX512-VNNI or AVX-VNNI. Otherwise the weights
            become floats when they are loaded, on any server.
        packed: whether the searches of `serving_default`, `nbest` and `translate_ids`
            have the weights of decoding steps as constants in their graph, of which
            oneDNN keeps a copy in its own order. Requests of few sentences take about
            two thirds of the time on x86 processors; the graph is larger by the
            weights of the decoder.
        shortlist: which tokens the translations of `serving_default`, `nbest`, `align`
            and `translate_ids` may have, by the tokens of their source; `None` for
            all. Scores are those among these tokens. `translate_with`, whose prefixes
            may hold any token, `sample` and `score` have the whole vocabulary.
        shortlist_width: number of tokens that each sentence has of the shortlist.
        signatures: names of those to write beside `serving_default`; by default all
            but `translate_with` and `sample`.
        version: positive; by default one more than the newest there, 1 at first.

    Returns:
        The folder written. It appears complete or not at all, with the sha256 of every
        file in `manifest.json`, see `keras_attnvariants.serving.verify`.

    Raises:
        ValueError: an option is out of range, the version exists, the vocabularies
            differ, `exact` is asked of a quantized model or `onednn` of another one or
            together with `packed`, the weights are too large to be packed, the
            shortlist does not fit to the model, or the model uses operators that no
            server has.
        TypeError: `shortlist` is given with an ensemble.
        FolderInUseError: another export into `path` is at work.

    Example:

    ```python
    path = kav.serving.export(model, tokenizer, "saved_models/en-de")
    served = tf.saved_model.load(path)  # after `import tensorflow_text`
    served.signatures["serving_default"](text=tf.constant(["Good morning."]))
    ```
    """
    model = exact_model(model) if exact else model
    if onednn:
        check_multiplies_integers(model)
    search = SearchSettings.of(
        model, beam_size=beam_size, length_penalty=length_penalty
    )
    options = checked_options(
        model,
        beam_size=search.beam_size,
        length_penalty=search.length_penalty,
        n_best=search.beam_size if n_best is None else n_best,
        max_batch=max_batch,
        max_characters=max_characters,
        max_tokens=min(256, model.max_length) if max_tokens is None else max_tokens,
        onednn=onednn,
        packed=packed,
        shortlist_width=None if shortlist is None else shortlist_width,
    )
    if onednn and packed:
        raise ValueError(
            "`onednn` keeps matrices of integers packed by itself: leave out `packed`. "
            "Received: both"
        )
    check_tokenizer(model, tokenizer)
    builder = builder_of(model, tokenizer, options, shortlist)
    wanted = wanted_signatures(builder, signatures)
    with lock_folder(Path(path)):
        folder = new_version(Path(path), version)
        with new_folder(folder, replace=False) as draft:
            write_version(draft.path, builder, wanted, tokenizer)
    return folder


def check_multiplies_integers(model: keras.Model) -> None:
    """Raises unless a model can multiply 8-bit integers by oneDNN, here and on servers.

    Raises:
        ValueError: it is not quantized to int8, or this TensorFlow has no oneDNN.
    """
    quantization = Precision.of(model).quantization
    if quantization != "int8":
        raise ValueError(
            "`onednn` needs a model that is quantized to int8. Received: a model with "
            f"the quantization {quantization}"
        )
    if not backend.has_onednn_product():
        raise ValueError(
            "`onednn` needs TensorFlow with oneDNN on a CPU, as official builds for "
            "Linux on x86-64 are. Received: a TensorFlow without its operator"
        )


def builder_of(
    model: keras.Model,
    tokenizer: Tokenizer | None,
    options: Options,
    shortlist: Shortlist | None,
) -> Signatures:
    """What builds the signatures: without a tokenizer those of ids alone."""
    if tokenizer is None:
        return Signatures(model, options, shortlist)
    return SentenceSignatures(model, options, tokenizer, shortlist)


def wanted_signatures(
    builder: Signatures, names: Collection[str] | None
) -> dict[str, Signature]:
    """The signatures to write: `serving_default` and those that are named.

    Raises:
        ValueError: one of them does not exist.
    """
    offered = builder.functions()
    if names is None:
        names = offered.keys() - LARGE_SIGNATURES
    for name in names:
        if name not in offered:
            listed = ", ".join(repr(other) for other in offered)
            raise ValueError(
                f"`signatures` must be some of {listed}. Received: {name!r}"
            )
    return {name: s for name, s in offered.items() if name in {DEFAULT, *names}}


def write_version(
    folder: Path,
    builder: Signatures,
    signatures: dict[str, Signature],
    tokenizer: Tokenizer | None,
) -> None:
    """Writes all files of a version.

    Raises:
        ValueError: the model uses operators that no server has.
    """
    onednn = builder.options.onednn
    products = backend.constant_integers() if onednn else backend.portable()
    with products, builder.weights.scope():
        functions = {
            name: signature.graph.get_concrete_function()
            for name, signature in signatures.items()
        }
    tf.saved_model.save(builder.resources(), str(folder), functions)
    declare_shapes(folder, signatures)
    share_nodes(folder)
    if missing := unservable(operators(folder)):
        raise ValueError(
            "`model` must use only operators that TensorFlow Serving has. "
            f"Received: {', '.join(sorted(missing))}"
        )
    model, options = builder.model, builder.options
    write_info(folder, options, Precision.of(model), signatures, tokenizer)
    write_server_files(folder, options, model, tokenizer)


def check_tokenizer(model: keras.Model, tokenizer: Tokenizer | None) -> None:
    """Raises if a tokenizer has more pieces than a model has embeddings.

    Raises:
        ValueError: it has.
    """
    embeddings = min(model.vocabulary_size, model.source_vocabulary_size)
    if tokenizer is not None and tokenizer.vocabulary_size > embeddings:
        raise ValueError(
            "`tokenizer` must not have more pieces than `model` has embeddings "
            f"({embeddings}). Received: {tokenizer.vocabulary_size} pieces"
        )


def write_server_files(
    folder: Path, options: Options, model: keras.Model, tokenizer: Tokenizer | None
) -> None:
    """Writes what TensorFlow Serving reads besides the model: see docs/serving.md."""
    signatures = read_json(folder / INFO)["signatures"]
    token = model.source_vocabulary_size - 1  # any that is not padding
    write_batching(folder, options.max_batch, signatures)
    write_warm_up(folder, options, signatures, tokenizer, token)


def new_version(path: Path, version: int | None) -> Path:
    """The folder of a version that does not exist yet."""
    if version is None:
        version = max(versions(path), default=0) + 1
    check_integer("version", version)
    folder = path / str(version)
    if folder.exists():
        raise ValueError(
            f"`version` must be new, because servers expect that versions never "
            f"change, and there is a folder {folder}. "
            f"Received: {version}"
        )
    return folder


def checked_options(model: keras.Model, **values: Any) -> Options:
    """The `Options`, if all are in range.

    Raises:
        ValueError: one is not.
    """
    for name, value in values.items():
        is_number = name not in ("length_penalty", "onednn", "packed")
        if is_number and value is not None:
            check_integer(name, value)
    if values["max_tokens"] > model.max_length:
        raise ValueError(
            f"`max_tokens` must be at most that of the model ({model.max_length}). "
            f"Received: {values['max_tokens']}"
        )
    return Options(**values)
