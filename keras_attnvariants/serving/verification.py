"""Checks of a SavedModel before it is loaded: damage, programs, the processor."""

import os
from collections.abc import Collection
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from keras_attnvariants.data import Tokenizer
from keras_attnvariants.serving.folders import GRAPH
from keras_attnvariants.serving.folders import REMEDY
from keras_attnvariants.serving.graphs import COMPUTING
from keras_attnvariants.serving.graphs import LOADING
from keras_attnvariants.serving.graphs import ONEDNN_OPERATORS
from keras_attnvariants.serving.graphs import SAVING
from keras_attnvariants.serving.graphs import TEXT_OPERATORS
from keras_attnvariants.serving.graphs import TOKENIZER
from keras_attnvariants.serving.graphs import Graph
from keras_attnvariants.serving.graphs import damage_if_failing
from keras_attnvariants.serving.graphs import nodes_of
from keras_attnvariants.serving.graphs import read_saved_model
from keras_attnvariants.utils.files import DamagedFolderError
from keras_attnvariants.utils.folders import MANIFEST
from keras_attnvariants.utils.folders import check_folder
from keras_attnvariants.utils.folders import read_manifest

# Those who run a server add files here, such as requests to warm up with.
_OWNERS = "assets.extra/"

# The signature that a server runs once, when it loads the model.
INITIALIZATION = "__saved_model_init_op"

WRONG_PROCESSOR = (
    "This model multiplies 8-bit integers, which this processor does not do exactly, "
    "so that translations would be wrong: use one with AVX512-VNNI or AVX-VNNI, or "
    "export the model again in another precision than int8."
)


class ProcessorError(ValueError):
    """An exported model would translate wrongly on this processor."""


def verify(
    path: str | os.PathLike[str], allowed: Collection[str] = frozenset()
) -> None:
    """Checks a SavedModel of this package before it is loaded; runs nothing of it.

    Its files must be those that `manifest.json` lists, with the same sha256; files that
    were added to `assets.extra/` are ignored. Its operators must be among those of
    `keras_attnvariants.serving.graphs`: none reads or writes a file, except where
    weights are restored or saved, and none runs Python. Its tokenizer must be a
    SentencePiece model. If it multiplies 8-bit integers, this processor must do that
    exactly.

    This finds damage, and programs disguised as models. It does not prove who exported
    the model: anyone who changes a file can change the manifest as well.

    Args:
        path: folder of one version.
        allowed: further operators that the model may have, such as those of an
            attention variant of your own.

    Raises:
        DamagedFolderError: a file is missing, changed or not in the manifest.
        ValueError: an operator is not allowed, or the tokenizer is invalid.
        ProcessorError: its translations would be wrong on this processor.
    """
    path = Path(path).resolve()
    try:
        check_folder(path, required=(GRAPH,))
    except DamagedFolderError as error:
        raise DamagedFolderError(
            f"A SavedModel is damaged: {REMEDY}. {error}"
        ) from error
    if unlisted := sorted(files_of(path) - read_manifest(path).keys() - {MANIFEST}):
        raise DamagedFolderError(
            f"{MANIFEST} must list every file outside {_OWNERS}: remove what was "
            f"added, or {REMEDY}. Received: {', '.join(unlisted)} in {path}"
        )
    with damage_if_failing(path):
        saved = read_saved_model(path)
        found = forbidden_operators(saved, allowed)
        nodes = list(nodes_of(saved))
    if found:
        raise ValueError(
            "A SavedModel must have only operators that compute translations, see "
            "`keras_attnvariants.serving.graphs`; pass those of a variant of your "
            f"own as `allowed`. Received: {', '.join(sorted(found))} in {path}"
        )
    for model in {node.attr["model"].s for node in nodes if node.op == TOKENIZER}:
        # The SentencePiece in TensorFlow Text is older and crashes on crafted ones.
        Tokenizer(model)
    if any(node.op in ONEDNN_OPERATORS for node in nodes):
        from keras_attnvariants import backend  # imports Keras; others need not

        if not backend.is_onednn_exact():
            raise ProcessorError(f"{WRONG_PROCESSOR} Received: {path}")


def files_of(path: Path) -> set[str]:
    """Names of the files in a version, without those of the server's owner."""
    names = {
        file.relative_to(path).as_posix()
        for file in path.rglob("*")
        if file.is_symlink() or not file.is_dir()
    }
    return {name for name in names if not name.startswith(_OWNERS)}


def forbidden_operators(saved: Any, allowed: Collection[str] = frozenset()) -> set[str]:
    """The operators of a SavedModel that are not allowed where they are.

    Args:
        saved: the content of its `saved_model.pb`.
        allowed: further operators that it may have anywhere.
    """
    everywhere = COMPUTING | TEXT_OPERATORS | frozenset(allowed)
    return {
        operator
        for graph in saved.meta_graphs
        for found, extra in parts(graph)
        for operator in found - everywhere - extra
    }


def parts(saved: Any) -> Iterator[tuple[set[str], frozenset[str]]]:
    """The operators of a `MetaGraphDef`, in three parts without a common node.

    Yields:
        The operators of a part, and the further ones that are allowed there. The parts:
        nodes that only save weights, nodes that only load or free them, and the rest.
    """
    graph, saver, objects = Graph(saved), saved.saver_def, saved.object_graph_def
    outputs = {
        name: [tensor.name for tensor in signature.outputs.values()]
        for name, signature in saved.signature_def.items()
    }
    initial = outputs.pop(INITIALIZATION, [])
    of_resources = {
        name
        for node in objects.nodes
        if node.WhichOneof("kind") == "resource"
        for child in node.children
        for name in objects.nodes[child.node_id].function.concrete_functions
    }
    # Loading in Python runs functions of objects.
    others = set(objects.concrete_functions) - of_resources
    served = graph.reached(others.union(*outputs.values()))
    loading = graph.reached([saver.restore_op_name, *initial, *of_resources]) - served
    saving = graph.reached([saver.save_tensor_name]) - loading - served
    yield graph.operators(saving), SAVING | LOADING
    yield graph.operators(loading), LOADING
    yield graph.operators(graph.content.keys() - saving - loading), frozenset()
