"""The graphs of SavedModels: read, walked and written; nothing is loaded or run."""

import contextlib
import os
import tomllib
from collections.abc import Iterable
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tensorflow as tf
from google.protobuf.message import DecodeError
from tensorflow.core.protobuf import saved_model_pb2

from keras_attnvariants.serving.folders import GRAPH
from keras_attnvariants.serving.folders import REMEDY
from keras_attnvariants.utils.files import DamagedFolderError

_TABLE = tomllib.loads(Path(__file__).with_name("operators.toml").read_text("utf-8"))
_SETS = {name: frozenset(names.split()) for name, names in _TABLE.items()}

# The file explains them.
PURE = _SETS["pure"]
ONEDNN_OPERATORS = _SETS["onednn"]
COMPUTING = PURE | ONEDNN_OPERATORS | _SETS["computing"]
TEXT_OPERATORS = _SETS["text"]
LOADING = _SETS["loading"]
SAVING = _SETS["saving"]
PYTHON_OPERATORS = _SETS["python"]
LOOPS = _SETS["loops"]


@contextlib.contextmanager
def using(path: str | os.PathLike[str]) -> Iterator[None]:
    """Context in which any error means that a SavedModel is damaged.

    TensorFlow has many errors for what it cannot load or run.

    Raises:
        DamagedFolderError: tells the error in one line, and what to do.
    """
    try:
        yield
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
    """Replaces `saved_model.pb` in the folder of one version."""
    data = saved.SerializeToString(deterministic=True)
    (Path(path) / GRAPH).write_bytes(data)


class Graph:
    """The nodes of a `MetaGraphDef`, alone and in functions.

    Attributes:
        nodes: those outside of functions, by name.
        functions: the nodes of each function, by its name.
    """

    def __init__(self, graph: Any) -> None:
        library = graph.graph_def.library.function
        self.nodes = {node.name: node for node in graph.graph_def.node}
        self.functions = {each.signature.name: each.node_def for each in library}

    @property
    def names(self) -> set[str]:
        """The names of all nodes outside of functions, and of all functions."""
        return {*self.nodes, *self.functions}

    def content(self, name: str) -> list[Any]:
        """The node of this name, and the nodes of the function of this name."""
        node = [self.nodes[name]] if name in self.nodes else []
        return [*node, *self.functions.get(name, ())]

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
            for node in self.content(name):
                waiting += called_functions(node, self.functions)
        return found

    def operators(self, names: Iterable[str]) -> set[str]:
        """The operators of nodes and functions; a function that is called is none."""
        found = {node.op for name in names for node in self.content(name)}
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
        Names of operators, those of all functions called included, by name of the
        signature; under `""` those of the initialisation, of saving and restoring.
    """
    saved = read_saved_model(path).meta_graphs[0]
    graph = Graph(saved)
    reached = {
        name: graph.reached(tensor.name for tensor in signature.outputs.values())
        for name, signature in saved.signature_def.items()
        if not name.startswith("__")
    }
    reached[""] = graph.names.difference(*reached.values())
    return {name: graph.operators(names) for name, names in reached.items()}


def unservable(found: set[str]) -> set[str]:
    """The operators among these that no server has."""
    return {
        name
        for name in found - TEXT_OPERATORS - ONEDNN_OPERATORS
        if name in PYTHON_OPERATORS or not hasattr(tf.raw_ops, name)
    }


def tokenizer_models(path: str | os.PathLike[str]) -> set[bytes]:
    """The SentencePiece models in the folder of one version."""
    graphs = map(Graph, read_saved_model(path).meta_graphs)
    nodes = (
        node for graph in graphs for name in graph.names for node in graph.content(name)
    )
    return {node.attr["model"].s for node in nodes if node.op == "SentencepieceOp"}


def operators_per_step(path: str | os.PathLike[str]) -> int:
    """The number of operators that a decoding step runs, with those of its functions.

    Constants and `Identity` are not counted. TensorFlow may fuse some of the operators
    when it loads the graph.

    Args:
        path: folder of one version.

    Returns:
        Those of the longest loop body without a loop in it; 0 if there is none.
    """
    functions = Graph(read_saved_model(path).meta_graphs[0]).functions
    bodies = {
        node.attr["body"].func.name
        for nodes in functions.values()
        for node in nodes
        if node.op in LOOPS
    }
    found = [list(inlined(functions[name], functions)) for name in bodies]
    lengths = [len(names) for names in found if LOOPS.isdisjoint(names)]
    return max(lengths, default=0)


def inlined(nodes: Iterable[Any], functions: dict[str, Any]) -> Iterator[str]:
    """The operators of nodes, with those of functions in the place of their calls."""
    for node in nodes:
        called = called_functions(node, functions)
        if node.op in LOOPS or (not called and node.op not in _SETS["free"]):
            yield node.op
        for name in called:
            yield from inlined(functions[name], functions)
