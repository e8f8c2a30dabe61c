"""The operators that an exported model runs for each position of a translation."""

import os
from collections.abc import Iterable
from collections.abc import Iterator
from typing import Any

from keras_attnvariants.serving.operators import called_functions
from keras_attnvariants.serving.operators import read_saved_model

LOOPS = ("While", "StatelessWhile")

# What takes no time of its own: arguments, constants, and names of other outputs.
FREE = frozenset({"Const", "Identity", "IdentityN", "NoOp", "Placeholder"})


def operators_per_step(path: str | os.PathLike[str]) -> int:
    """How many operators a decoding step runs, functions that it calls included.

    Constants and `Identity` are not counted. Nothing is loaded or run. TensorFlow may
    fuse some of the operators when it does.

    Args:
        path: folder of one version.

    Returns:
        Those of the longest loop body without a loop in it; 0 if there is none.
    """
    library = read_saved_model(path).meta_graphs[0].graph_def.library.function
    functions = {f.signature.name: f.node_def for f in library}
    bodies = {
        node.attr["body"].func.name
        for nodes in functions.values()
        for node in nodes
        if node.op in LOOPS
    }
    found = [list(inlined(functions[name], functions)) for name in bodies]
    lengths = [len(names) for names in found if not set(LOOPS) & set(names)]
    return max(lengths, default=0)


def inlined(nodes: Iterable[Any], functions: dict[str, Iterable[Any]]) -> Iterator[str]:
    """The operators of nodes, with those of functions in the place of their calls."""
    for node in nodes:
        called = [node.op] if node.op in functions else called_functions(node)
        if node.op in LOOPS or (not called and node.op not in FREE):
            yield node.op
        for name in called:
            yield from inlined(functions[name], functions)
