"""Export of models as ONNX graphs, with programs for beam search."""

import os
from pathlib import Path

import keras

from keras_attnvariants import __version__
from keras_attnvariants.data import Tokenizer
from keras_attnvariants.models import SearchSettings
from keras_attnvariants.models.templates import with_policy
from keras_attnvariants.serving.exporting import check_pieces
from keras_attnvariants.serving.exporting import check_reads_texts
from keras_attnvariants.serving.formats import write_tokenizers
from keras_attnvariants.serving.formats.steps import StepFunctions
from keras_attnvariants.utils.folders import check_new
from keras_attnvariants.utils.folders import new_folder
from keras_attnvariants.utils.machine import check_extra

TEMPLATES = Path(__file__).with_name("templates")
IDS = ("pad_id", "bos_id", "eos_id")


def export_onnx(
    model: keras.Model,
    tokenizer: Tokenizer,
    path: str | os.PathLike[str],
    *,
    beam_size: int | None = None,
    length_penalty: float | None = None,
) -> Path:
    """Writes a folder with a model as three ONNX graphs, and with its search.

    `encode.onnx`, `initial_state.onnx` and `step.onnx` are the methods of a step model
    (`keras_attnvariants.decoding.StepModel`) in float32; `step` also reorders
    hypotheses by their parents, and returns log probabilities. `translate.py` and
    `translate.js` are beam searches without TensorFlow, to read and change;
    `model.json` has their settings. Needs the extra `onnx`, and TensorFlow as backend.

    Args:
        model: a step model, such as `keras_attnvariants.Transformer`.
        tokenizer: its tokenizer.
        path: the folder, which must not exist.
        beam_size, length_penalty: options of the searches; by default those of the
            model's `search_settings`. The graphs fix the number of hypotheses.

    Returns:
        `path`. The folder appears complete or not at all, with the sha256 of every file
        in `manifest.json`.

    Raises:
        ValueError: an option is out of range, the model's `search_settings` have a
            `min_length` or `no_repeat_ngram`, ONNX does not support an operator, or the
            extra is not installed.
        FileExistsError: the folder exists.
    """
    path = check_new(path)
    check_reads_texts(model, "ONNX folders")
    check_pieces(tokenizer, model.source_vocabulary_size)
    check_pieces(tokenizer.target, model.vocabulary_size)
    check_extra("This export", "onnx", ("onnx", "tf2onnx"))
    # Imported here because it needs the extra.
    from keras_attnvariants.backend.onnx_graphs import onnx_graph

    given = {"beam_size": beam_size, "length_penalty": length_penalty}
    search = SearchSettings.of(model, **given)
    if search.min_length or search.no_repeat_ngram:
        raise ValueError(
            "`model` must have search settings without `min_length` and "
            "`no_repeat_ngram`, which searches with ONNX do not have. "
            f"Received: {search}"
        )
    if getattr(model, "compute_dtype", "float32") != "float32":
        model = with_policy(model, "float32")
    # Kept to the end: graphs do not keep the variables that they read.
    steps = StepFunctions(model, search.beam_size)
    settings = {
        "version": __version__,
        **search.to_dict(),
        "max_length": model.max_length,
        **{name: getattr(model, name) for name in IDS},
    }
    with new_folder(path, replace=False) as draft:
        for name, function in steps.functions.items():
            graph = onnx_graph(*function)
            draft.write_bytes(f"{name}.onnx", graph.SerializeToString())
        settings |= write_tokenizers(draft, tokenizer)
        draft.write_json("model.json", settings)
        # Without `__pycache__`, which an installation may add.
        for template in sorted(filter(Path.is_file, TEMPLATES.iterdir())):
            draft.write_bytes(template.name, template.read_bytes())
    return path
