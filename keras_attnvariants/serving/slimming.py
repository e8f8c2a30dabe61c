"""Makes the graph of a SavedModel smaller without changing what it computes."""

import os
from collections.abc import Hashable
from collections.abc import Iterable
from collections.abc import MutableSequence
from pathlib import Path
from typing import Any

from tensorflow.core.protobuf import saved_model_pb2


def share_constants(path: str | os.PathLike[str]) -> None:
    """Keeps one constant of each value in each function of a SavedModel.

    Every use of a Python number or of a dynamic shape traces constants of its own, so
    that nearly half of the nodes of a decoding graph are constants, of few values.
    Shapes that TensorFlow infers again are left out too. The file is rewritten in
    place. `fingerprint.pb`, a checksum of the file before, which loaders can do
    without, is removed.

    Args:
        path: folder of one version that nobody reads yet.
    """
    file = Path(path) / "saved_model.pb"
    saved = saved_model_pb2.SavedModel()
    saved.ParseFromString(file.read_bytes())
    for graph in saved.meta_graphs:
        for function in graph.graph_def.library.function:
            share_in_function(function)
    file.write_bytes(saved.SerializeToString(deterministic=True))
    (Path(path) / "fingerprint.pb").unlink(missing_ok=True)


def share_in_function(function: Any) -> None:
    """Keeps one constant of each value in a `FunctionDef`, and no inferred shapes."""
    first: dict[Hashable, str] = {}
    replaced: dict[str, str] = {}
    for node in function.node_def:
        # One with a control input waits for it, perhaps because it runs in a branch.
        if node.op == "Const" and not node.input:
            replaced[node.name] = first.setdefault(content(node), node.name)
    kept = [
        node
        for node in function.node_def
        if replaced.get(node.name, node.name) == node.name
    ]
    for node in kept:
        redirect(node.input, replaced)
        # TensorFlow infers them again.
        node.attr.pop("_output_shapes", None)
    for results in (function.ret, function.control_ret):
        for name, source in results.items():
            results[name] = redirected(source, replaced)
    del function.node_def[:]
    function.node_def.extend(kept)


def content(node: Any) -> Hashable:
    """What two constants have to have in common to be one."""
    attributes: Iterable[tuple[str, Any]] = sorted(node.attr.items())
    values = ((name, value.SerializeToString()) for name, value in attributes)
    return node.device, *values


def redirect(inputs: MutableSequence[str], replaced: dict[str, str]) -> None:
    """Lets the inputs of a node come from the constants that are kept."""
    inputs[:] = [redirected(source, replaced) for source in inputs]


def redirected(source: str, replaced: dict[str, str]) -> str:
    """`source`, `"^node"` or `"node:output:0"`, from the constant that is kept."""
    caret = "^" if source.startswith("^") else ""
    node, *output = source.removeprefix("^").split(":")
    return caret + ":".join([replaced.get(node, node), *output])
