"""Reads, walks and shrinks graphs of SavedModels without loading or running them."""

import contextlib
import os
import tomllib
from collections.abc import Hashable
from collections.abc import Iterable
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tensorflow as tf
from google.protobuf.message import DecodeError
from tensorflow.core.framework import types_pb2
from tensorflow.core.protobuf import saved_model_pb2

from keras_attnvariants.serving.folders import GRAPH
from keras_attnvariants.serving.folders import REMEDY
from keras_attnvariants.utils.files import DamagedFolderError

_TABLE = tomllib.loads(Path(__file__).with_name("operators.toml").read_text("utf-8"))
_SETS = {name: frozenset(names.split()) for name, names in _TABLE.items()}

# operators.toml explains these sets.
PURE = _SETS["pure"]
ONEDNN_OPERATORS = _SETS["onednn"]
COMPUTING = PURE | ONEDNN_OPERATORS | _SETS["computing"]
TEXT_OPERATORS = _SETS["text"]
LOADING = _SETS["loading"]
SAVING = _SETS["saving"]
PYTHON_OPERATORS = _SETS["python"]
TOKENIZER = "SentencepieceOp"


@contextlib.contextmanager
def damage_if_failing(path: str | os.PathLike[str]) -> Iterator[None]:
    """Context in which any error means that a SavedModel is damaged.

    TensorFlow raises many different errors if it cannot load or run a model.

    Raises:
        DamagedFolderError: states the error in one line, and what to do.
    """
    try:
        yield
    except DamagedFolderError:
        raise
    except Exception as error:
        text = " ".join(f"{type(error).__name__}: {error}".split())
        raise DamagedFolderError(
            f"The SavedModel is damaged ({text:.200}): {REMEDY}. Received: {path}"
        ) from error


def read_saved_model(path: str | os.PathLike[str]) -> Any:
    """The content of `saved_model.pb` in the folder of one version.

    Raises:
        DamagedFolderError: it holds no graph.
    """
    saved = saved_model_pb2.SavedModel()
    try:
        saved.ParseFromString((Path(path) / GRAPH).read_bytes())
    except DecodeError:
        saved.Clear()
    if not saved.meta_graphs:
        raise DamagedFolderError(
            f"{GRAPH} is not a SavedModel: {REMEDY}. Received: {os.fspath(path)}"
        )
    return saved


def write_saved_model(path: str | os.PathLike[str], saved: Any) -> None:
    """Replaces `saved_model.pb` in the folder of one version.

    `fingerprint.pb`, a checksum of the old file, is removed: loaders do not need it.
    """
    data = saved.SerializeToString(deterministic=True)
    (Path(path) / GRAPH).write_bytes(data)
    (Path(path) / "fingerprint.pb").unlink(missing_ok=True)


class Graph:
    """The nodes of a `MetaGraphDef`, outside and inside of functions.

    Attributes:
        nodes: those outside of functions, by name.
        functions: the nodes of each function, by its name.
        content: the node of each name, and the nodes of the function of this name.
    """

    def __init__(self, graph: Any) -> None:
        library = graph.graph_def.library.function
        self.nodes = {node.name: node for node in graph.graph_def.node}
        self.functions = {each.signature.name: each.node_def for each in library}
        self.content = {name: [node] for name, node in self.nodes.items()}
        for name, nodes in self.functions.items():
            self.content.setdefault(name, []).extend(nodes)

    def reached(self, names: Iterable[str]) -> set[str]:
        """The names of nodes and functions that tensors or functions depend on."""
        found: set[str] = set()
        waiting = list(names)
        while waiting:
            name = node_of(waiting.pop())
            if name in found:
                continue
            found.add(name)
            if name in self.nodes:
                waiting += self.nodes[name].input
            for node in self.content.get(name, ()):
                waiting += called_functions(node, self.functions)
        return found

    def operators(self, names: Iterable[str]) -> set[str]:
        """The operators of nodes and functions; a called function is not one."""
        found = {node.op for name in names for node in self.content.get(name, ())}
        return found - self.functions.keys()


def node_of(source: str) -> str:
    """The node of `"node"`, `"^node"` (a control input), or `"node:output:0"`."""
    return source.removeprefix("^").split(":")[0]


def called_functions(node: Any, functions: dict[str, Any]) -> list[str]:
    """The names of the functions that a node may call; its operator may be one."""
    names = [node.op]
    for value in node.attr.values():
        names.extend(function.name for function in value.list.func)
        names.append(value.func.name)
    return [name for name in names if name in functions]


def operators(path: str | os.PathLike[str]) -> dict[str, set[str]]:
    """The operators that each signature of a SavedModel can reach.

    Reads `saved_model.pb`; nothing is loaded or run.

    Args:
        path: folder of one version.

    Returns:
        Names of operators by name of the signature, including those of all called
        functions; under `""` those of initialisation, saving and restoring.
    """
    saved = read_saved_model(path).meta_graphs[0]
    graph = Graph(saved)
    reached = {
        name: graph.reached(tensor.name for tensor in signature.outputs.values())
        for name, signature in saved.signature_def.items()
        if not name.startswith("__")
    }
    reached[""] = set(graph.content).difference(*reached.values())
    return {name: graph.operators(names) for name, names in reached.items()}


def unservable(found: set[str]) -> set[str]:
    """The operators among these that no server has."""
    return {
        name
        for name in found - TEXT_OPERATORS - ONEDNN_OPERATORS
        if name in PYTHON_OPERATORS or not hasattr(tf.raw_ops, name)
    }


def nodes_of(saved: Any) -> Iterator[Any]:
    """All nodes in the content of `saved_model.pb`, including those of functions."""
    for graph in map(Graph, saved.meta_graphs):
        for nodes in graph.content.values():
            yield from nodes


def share_nodes(saved: Any) -> None:
    """Merges equal nodes and removes unused ones in each function of a SavedModel.

    The graph gets smaller, and computes the same. Every use of a Python number or of a
    dynamic shape traces new nodes, so that two thirds of the nodes of a decoding graph
    are constants and sizes with few different values. TensorFlow would merge them
    every time it loads the graph. Shapes that it infers again are removed too.

    Args:
        saved: the content of `saved_model.pb`, which is changed.
    """
    for graph in saved.meta_graphs:
        share_tokenizers(graph.graph_def)
        for function in graph.graph_def.library.function:
            share_in_function(function)


def share_tokenizers(graph: Any) -> None:
    """Replaces tokenizers in a `GraphDef` by calls of functions that make the same.

    A tokenizer contains its vocabulary, often the largest part of a small graph. Python
    makes it by a function without inputs and with one output, and servers by a node
    outside of functions.
    """
    makers = {
        content(node): function.signature.name
        for function in graph.library.function
        for node in function.node_def
        if node.op == TOKENIZER
        and not function.signature.input_arg
        and [x.type for x in function.signature.output_arg] == [types_pb2.DT_RESOURCE]
    }
    for node in graph.node:
        if node.op == TOKENIZER and (maker := makers.get(content(node))):
            node.op = "StatefulPartitionedCall"
            node.attr.clear()
            node.attr["Tin"].list.SetInParent()
            node.attr["Tout"].list.type.append(types_pb2.DT_RESOURCE)
            node.attr["f"].func.name = maker


def share_in_function(function: Any) -> None:
    """Merges equal nodes of a `FunctionDef`; removes unused ones and shapes."""
    first: dict[Hashable, str] = {}
    replaced: dict[str, str] = {}
    kept = {}
    for node in function.node_def:
        node.input[:] = [redirected(source, replaced) for source in node.input]
        # TensorFlow infers them again.
        node.attr.pop("_output_shapes", None)
        key = content(node) if is_pure(node) else node.name
        replaced[node.name] = first.setdefault(key, node.name)
        if replaced[node.name] == node.name:
            kept[node.name] = node
    used = {name for name, node in kept.items() if not is_pure(node)}
    for outputs in (function.ret, function.control_ret):
        # A list, since writing into a protobuf map changes its order.
        for name, source in list(outputs.items()):
            outputs[name] = redirected(source, replaced)
            used.add(node_of(outputs[name]))
    # Nodes come after those that they take their inputs from.
    for name in reversed(kept):
        if name in used:
            used.update(map(node_of, kept[name].input))
    del function.node_def[:]
    function.node_def.extend(node for name, node in kept.items() if name in used)


def is_pure(node: Any) -> bool:
    """Whether a node does nothing but compute its outputs from its inputs.

    A node with a control input waits for it, perhaps because it runs in a branch.
    """
    waits = any(source.startswith("^") for source in node.input)
    return not waits and (node.op in PURE or node.op in ("Const", "Identity"))


def content(node: Any) -> Hashable:
    """The properties that two nodes must share to be merged."""
    attributes: Iterable[tuple[str, Any]] = sorted(node.attr.items())
    values = ((name, value.SerializeToString()) for name, value in attributes)
    return node.op, node.device, tuple(node.input), *values


def redirected(source: str, replaced: dict[str, str]) -> str:
    """`source`, `"^node"` or `"node:output:0"`, redirected to the node that is kept."""
    node = node_of(source)
    return source.replace(node, replaced.get(node, node), 1)
