"""Makes the graph of a SavedModel smaller without changing what it computes."""

import os
from collections.abc import Hashable
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tensorflow.core.framework import types_pb2

from keras_attnvariants.serving.graphs import PURE
from keras_attnvariants.serving.graphs import node_of
from keras_attnvariants.serving.graphs import read_saved_model
from keras_attnvariants.serving.graphs import write_saved_model

TOKENIZER = "SentencepieceOp"


def share_nodes(path: str | os.PathLike[str]) -> None:
    """Keeps one of equal nodes, and used ones only, in each function of a SavedModel.

    Every use of a Python number or of a dynamic shape traces nodes of its own, so that
    two thirds of the nodes of a decoding graph are constants and sizes, of few values.
    TensorFlow would find that out whenever it loads the graph. Shapes that it infers
    again are left out too. The file is rewritten in place. `fingerprint.pb`, a checksum
    of the file before, which loaders can do without, is removed.

    Args:
        path: folder of one version that nobody reads yet.
    """
    saved = read_saved_model(path)
    for graph in saved.meta_graphs:
        share_tokenizers(graph.graph_def)
        for function in graph.graph_def.library.function:
            share_in_function(function)
    write_saved_model(path, saved)
    (Path(path) / "fingerprint.pb").unlink(missing_ok=True)


def share_tokenizers(graph: Any) -> None:
    """Lets nodes of a `GraphDef` call the functions that make the same tokenizers.

    A tokenizer holds its vocabulary, often the largest part of a small graph. Python
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
    """Keeps one of equal nodes and used ones only in a `FunctionDef`, and no shapes."""
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

    One with a control input waits for it, perhaps because it runs in a branch.
    """
    waits = any(source.startswith("^") for source in node.input)
    return not waits and (node.op in PURE or node.op in ("Const", "Identity"))


def content(node: Any) -> Hashable:
    """The properties that two nodes must share to be merged."""
    attributes: Iterable[tuple[str, Any]] = sorted(node.attr.items())
    values = ((name, value.SerializeToString()) for name, value in attributes)
    return node.op, node.device, tuple(node.input), *values


def redirected(source: str, replaced: dict[str, str]) -> str:
    """`source`, `"^node"` or `"node:output:0"`, from the node that is kept."""
    node = node_of(source)
    return source.replace(node, replaced.get(node, node), 1)
