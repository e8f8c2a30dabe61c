"""Writing a model as a SavedModel that translates text to text.

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

Models of recordings take `audio` `[B, S]` and `lengths` `[B]` instead of `text` and
`source`, and have one more signature:

| signature | in | out |
|---|---|---|
| `translate_wav` | `wav` `[B]`, the bytes of WAV files | as `serving_default` |

`translate_with` and `sample` need separate searches, which make the graph larger; they
are written only if `signatures` names them. For a sentence without an option, send -1
(integers), NaN (floats), or `""`.

`translate_ids` uses stock TensorFlow operators only, and ignores what
`source_ids` holds beyond `lengths`. The others need TensorFlow Text of
the release that `assets.extra/model_info.json` states. The graph enforces the limits:
a wrong shape or more than `max_batch` sentences is an error; longer texts are cut to
whole characters and tokens and reported in `truncated`. A sentence that cannot be
translated has an empty translation, and a `status` other than 0 says why
(`keras_attnvariants.serving.Status`). Invalid UTF-8 is read as U+FFFD.

Example:

```python
path = kav.serving.export(model, tokenizer, "saved_models/en-de")
served = tf.saved_model.load(path)  # after `import tensorflow_text`
served.signatures["serving_default"](text=tf.constant(["Good morning."]))
```
"""

import os
from collections.abc import Collection
from pathlib import Path
from typing import Unpack

import keras
import tensorflow as tf

from keras_attnvariants.data import Shortlist
from keras_attnvariants.data import Tokenizer
from keras_attnvariants.serving.folders import versions
from keras_attnvariants.serving.graphs import operators
from keras_attnvariants.serving.graphs import read_saved_model
from keras_attnvariants.serving.graphs import share_nodes
from keras_attnvariants.serving.graphs import unservable
from keras_attnvariants.serving.graphs import write_saved_model
from keras_attnvariants.serving.inputs import GraphSignature
from keras_attnvariants.serving.inputs import declare_shapes
from keras_attnvariants.serving.options import ExportOptions
from keras_attnvariants.serving.options import Options
from keras_attnvariants.serving.precision import model_in
from keras_attnvariants.serving.signatures import Signatures
from keras_attnvariants.serving.translator import DEFAULT
from keras_attnvariants.serving.translator import TRANSLATE_WAV
from keras_attnvariants.serving.version_files import write_batching
from keras_attnvariants.serving.version_files import write_info
from keras_attnvariants.serving.version_files import write_warm_up
from keras_attnvariants.utils.checks import check_choice
from keras_attnvariants.utils.checks import check_integer
from keras_attnvariants.utils.folders import check_new
from keras_attnvariants.utils.folders import new_folder
from keras_attnvariants.utils.locks import lock_folder

# Each needs a separate search, which a graph contains only on request.
LARGE_SIGNATURES = {"translate_with", "sample"}


def export(
    model: keras.Model,
    tokenizer: Tokenizer | None,
    path: str | os.PathLike[str],
    *,
    precision: str | None = None,
    shortlist: Shortlist | None = None,
    signatures: Collection[str] | None = None,
    version: int | None = None,
    **options: Unpack[ExportOptions],
) -> Path:
    """Writes `path/<version>/`, a SavedModel that needs no Python of this package.

    See the module for its signatures.

    Args:
        model: a step model, such as `keras_attnvariants.Transformer`.
        tokenizer: its tokenizer. With `None` the SavedModel has only `translate_ids`,
            also as `serving_default`, and loads without TensorFlow Text.
        path: folder of all versions, as TensorFlow Serving watches it.
        precision: how it computes. `"float32"`: the translation of a sentence does
            not depend on the others in its request. `"bfloat16"`: half the size.
            `"auto"`: the faster of the two here. `"int8"`: multiplies 8-bit integers,
            on servers for Linux on x86-64 whose processor has AVX512-VNNI or AVX-VNNI.
            `"int8-weights"`: stores such integers and turns them into floats when it
            is loaded, on any server. `None`: the floats of the model, or
            `"int8-weights"` if it is quantized.
        shortlist: which tokens the translations of `serving_default`, `nbest`, `align`
            and `translate_ids` may have, by the tokens of their source; `None` for
            all. Probabilities are normalised over these tokens. The other signatures
            use the whole vocabulary: prefixes, for instance, may have any token.
        signatures: names of the signatures to write besides `serving_default` and
            `translate_wav`; by default all but `translate_with` and `sample`.
        version: positive; by default one more than the newest version, or 1.
        options: search options and limits of requests, see `ExportOptions`.

    Returns:
        The folder written. It appears complete or not at all, with the sha256 of every
        file in `manifest.json`, see `keras_attnvariants.serving.verify`.

    Raises:
        ValueError: an option is out of range or excludes another, the vocabularies
            differ, the shortlist or the precision does not fit the model, or the model
            uses operators that no server has.
        FileExistsError: the version exists: servers expect that it never changes.
        ProcessorError: `precision` is `"int8"`, and translations would be wrong here.
        TypeError: `shortlist` is given with an ensemble.
        FolderInUseError: another export into `path` is running.
    """
    chosen = Options.of(model, shortlist is not None, **options)
    if tokenizer is not None:
        check_pieces(tokenizer, model.source_vocabulary_size)
        check_pieces(tokenizer.target, model.vocabulary_size)
    model = model_in(model, precision)
    builder = Signatures(model, chosen, tokenizer, shortlist, precision == "int8")
    available = builder.functions()
    names = available.keys() - LARGE_SIGNATURES if signatures is None else signatures
    for name in names:
        check_choice("signatures", name, available)
    names = {DEFAULT, TRANSLATE_WAV, *names}
    wanted = {name: available[name] for name in available if name in names}
    with lock_folder(Path(path)):
        folder = new_version(Path(path), version)
        with new_folder(folder, replace=False) as draft:
            write_version(draft.path, builder, wanted)
    return folder


def check_reads_texts(model: keras.Model, form: str) -> None:
    """Raises `ValueError` for a model of recordings, which some formats lack."""
    if getattr(model, "source_stride", 1) > 1:
        raise ValueError(
            f"{form} support only models that read texts: `kav transcribe --model` "
            f"runs one that reads recordings. Received: {model.name}"
        )


def check_pieces(tokenizer: Tokenizer, embeddings: int) -> None:
    """Raises `ValueError` if there are fewer embeddings than pieces."""
    if tokenizer.vocabulary_size > embeddings:
        raise ValueError(
            "`tokenizer` must not have more pieces than `model` has embeddings "
            f"({embeddings}). Received: {tokenizer.vocabulary_size} pieces"
        )


def write_version(
    folder: Path, builder: Signatures, signatures: dict[str, GraphSignature]
) -> None:
    """Writes all files of a version.

    Raises:
        ValueError: the model uses operators that no server has.
    """
    functions = {name: each.graph for name, each in signatures.items()}
    # Gradients, such as that of swish, are not needed, and fail to load from a loop.
    saving = tf.saved_model.SaveOptions(experimental_custom_gradients=False)
    tf.saved_model.save(builder.resources(), str(folder), functions, saving)
    saved = read_saved_model(folder)
    declare_shapes(saved, signatures)
    share_nodes(saved)
    write_saved_model(folder, saved)
    if missing := unservable(set().union(*operators(folder).values())):
        raise ValueError(
            "`model` must use only operators that TensorFlow Serving has. "
            f"Received: {', '.join(sorted(missing))}"
        )
    write_info(folder, builder, signatures)
    write_batching(folder, builder.options.max_batch, signatures)
    write_warm_up(folder, builder, signatures)


def new_version(path: Path, version: int | None) -> Path:
    """The folder of a version that does not exist yet."""
    if version is None:
        version = max(versions(path), default=0) + 1
    return check_new(path / str(check_integer("version", version)), "version")
