"""Whether a SavedModel is as it was written, and does no more than translate."""

import os
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from keras_attnvariants.data import Tokenizer
from keras_attnvariants.serving.operators import COMPUTING
from keras_attnvariants.serving.operators import MAKING
from keras_attnvariants.serving.operators import RESTORING
from keras_attnvariants.serving.operators import SAVING
from keras_attnvariants.serving.operators import TEXT_OPERATORS
from keras_attnvariants.serving.operators import ancestors
from keras_attnvariants.serving.operators import called_functions
from keras_attnvariants.serving.operators import read_saved_model
from keras_attnvariants.serving.operators import tokenizer_models
from keras_attnvariants.serving.processor import check_processor
from keras_attnvariants.utils.files import DamagedFolderError
from keras_attnvariants.utils.folders import MANIFEST
from keras_attnvariants.utils.folders import check_folder
from keras_attnvariants.utils.folders import read_manifest

# Servers' owners add files here, such as requests to warm up with.
_OWNERS = "assets.extra/"


# The signature that a server runs once, when it loads the model.
INITIALIZATION = "__saved_model_init_op"


def verify(
    path: str | os.PathLike[str], allowed: Collection[str] = frozenset()
) -> None:
    """Checks a SavedModel of this package before it is loaded; nothing of it is run.

    Its files must be those that `manifest.json` lists, with the same sha256; files that
    were added to `assets.extra/` are passed over. Its operators must be among those of
    `keras_attnvariants.serving.operators`: none reads or writes a file, except where
    weights are restored or saved, and none runs Python. Its tokenizer must be a
    SentencePiece model. If it multiplies 8-bit integers, this processor must do that
    exactly.

    This finds damage, and programs in the clothes of a model. It does not prove who
    exported the model: who changes a file can change the manifest as well.

    Args:
        path: folder of one version.
        allowed: further operators that the model may have, such as those of an
            attention variant of your own.

    Raises:
        DamagedFolderError: a file is missing, changed or not in the manifest.
        ValueError: an operator is not allowed, or the tokenizer is none.
        ProcessorError: its translations would be wrong on this processor.
    """
    path = Path(path)
    check_folder(path, required=("saved_model.pb",))
    if unlisted := sorted(files_of(path) - read_manifest(path).keys() - {MANIFEST}):
        raise DamagedFolderError(
            f"{MANIFEST} must list every file outside {_OWNERS}. Received: "
            f"{', '.join(unlisted)} in {path}"
        )
    if found := forbidden_operators(path, allowed):
        raise ValueError(
            "A SavedModel must have only operators that compute translations, see "
            "`keras_attnvariants.serving.operators`; pass those of a variant of your "
            f"own as `allowed`. Received: {', '.join(sorted(found))} in {path}"
        )
    for model in tokenizer_models(path):
        # The SentencePiece in TensorFlow Text is older and crashes on crafted ones.
        Tokenizer(model)
    check_processor(path)


def files_of(path: Path) -> set[str]:
    """Names of the files in a version, without those of the server's owner."""
    names = {
        file.relative_to(path).as_posix()
        for file in path.rglob("*")
        if file.is_symlink() or not file.is_dir()
    }
    return {name for name in names if not name.startswith(_OWNERS)}


def forbidden_operators(
    path: str | os.PathLike[str], allowed: Collection[str] = frozenset()
) -> set[str]:
    """The operators of a SavedModel that should not be where they are.

    Args:
        path: folder of one version.
        allowed: further operators that it may have anywhere.
    """
    everywhere = COMPUTING | TEXT_OPERATORS | frozenset(allowed)
    return {
        operator
        for graph in read_saved_model(path).meta_graphs
        for operators, extra in parts(graph)
        for operator in operators - everywhere - extra
    }


def parts(graph: Any) -> Iterator[tuple[set[str], frozenset[str]]]:
    """All nodes of a `MetaGraphDef`, in four parts that have no node in common.

    Yields:
        The operators of a part, and those that are allowed there besides: in what only
        saves weights, in what only restores them, in what only makes or frees others of
        them, and in all the rest.
    """
    functions = {f.signature.name: f.node_def for f in graph.graph_def.library.function}
    nodes = {node.name: node for node in graph.graph_def.node}
    saver = graph.saver_def
    saving = reached(nodes, functions, [saver.save_tensor_name])
    restoring = reached(nodes, functions, [saver.restore_op_name])
    outputs, initial = (
        [
            tensor.name
            for name, signature in graph.signature_def.items()
            if (name == INITIALIZATION) == is_initial
            for tensor in signature.outputs.values()
        ]
        for is_initial in (False, True)
    )
    served = reached(nodes, functions, outputs)
    # Loading in Python runs functions of objects.
    of_resources = functions_of_resources(graph.object_graph_def)
    others = set(graph.object_graph_def.concrete_functions) - of_resources
    served |= with_called(others, functions)
    making = reached(nodes, functions, initial) | with_called(of_resources, functions)
    rest = nodes.keys() | functions.keys()
    for names, extra in (
        (saving - restoring - served, SAVING | RESTORING),
        (restoring - served, RESTORING),
        (making - restoring - served, MAKING),
    ):
        yield operators_of(names, nodes, functions), extra
        rest = rest - names
    yield operators_of(rest, nodes, functions), frozenset()


def functions_of_resources(objects: Any) -> set[str]:
    """Names of the functions that make, fill and free what is not restored."""
    return {
        name
        for node in objects.nodes
        if node.WhichOneof("kind") == "resource"
        for child in node.children
        for name in objects.nodes[child.node_id].function.concrete_functions
    }


def reached(
    nodes: dict[str, Any], functions: dict[str, Any], tensors: Iterable[str]
) -> set[str]:
    """Names of the nodes that tensors come from, and of the functions they call."""
    found = ancestors(nodes, [name for name in tensors if name])
    return found | with_called(called_by(nodes[name] for name in found), functions)


def with_called(names: Iterable[str], functions: dict[str, Any]) -> set[str]:
    """Functions, with those that they call, directly or not."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in functions and name not in found:
            found.add(name)
            waiting.extend(called_by(functions[name]))
    return found


def called_by(nodes: Iterable[Any]) -> Iterator[str]:
    """Names of all functions that nodes may call; an operator may be one, too."""
    for node in nodes:
        yield node.op
        yield from called_functions(node)


def operators_of(
    names: Collection[str], nodes: dict[str, Any], functions: dict[str, Any]
) -> set[str]:
    """The operators of nodes and of functions, without the calls of functions."""
    bodies = [functions[name] for name in names if name in functions]
    alone = [nodes[name] for name in names if name in nodes]
    return {node.op for body in (*bodies, alone) for node in body} - functions.keys()
