"""The operators that a SavedModel runs, and those that one of this package may have.

All of the latter are in every build of TensorFlow and of TensorFlow Serving, but for
the text operators and that of oneDNN. None of them reaches a file, a network, a device
other than the model's, a thread or Python, except those that restore and save weights.
"""

import os
from collections.abc import Iterable
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tensorflow as tf
from google.protobuf.message import DecodeError
from tensorflow.core.protobuf import saved_model_pb2

from keras_attnvariants.utils.files import DamagedFolderError

# TensorFlow Serving links these in from TensorFlow Text; both releases must agree.
TEXT_OPERATORS = frozenset(
    {
        "SentencepieceOp",
        "SentencepieceTokenizeOp",
        "SentencepieceDetokenizeOp",
        "SentencepieceIdToStringOp",
    }
)

_CALLS = """
    Assert Case Const Identity IdentityN If NoOp PartitionedCall Placeholder
    PreventGradient ReadVariableOp StatefulPartitionedCall StatelessCase StatelessIf
    StatelessWhile StopGradient VarHandleOp While
"""
_ARITHMETIC = """
    Abs Acos Acosh AddN AddV2 Asin Asinh Atan Atan2 Atanh Bitcast BitwiseAnd BitwiseOr
    BitwiseXor Cast Ceil ClipByValue Cos Cosh Cumprod Cumsum CumulativeLogsumexp Digamma
    Div DivNoNan Elu Erf Erfc Erfinv Exp Expm1 Floor FloorDiv FloorMod Inv Invert
    LeakyRelu LeftShift Lgamma Log Log1p Max Maximum Mean Min Minimum Mod Mul MulNoNan
    Neg Pow Prod RealDiv Reciprocal Relu Relu6 RightShift Rint Round Rsqrt Selu Sigmoid
    Sign Sin Sinh Softplus Softsign Sqrt Square SquaredDifference Sub Sum Tan Tanh
    TruncateDiv TruncateMod Xdivy Xlog1py Xlogy
"""
_LOGIC = """
    All Any ApproximateEqual ArgMax ArgMin Equal Greater GreaterEqual InTopKV2 IsFinite
    IsInf IsNan Less LessEqual LogicalAnd LogicalNot LogicalOr NotEqual Select SelectV2
    TopKV2 Where
"""
_SHAPES = """
    BroadcastArgs BroadcastTo ConcatV2 Diag DiagPart DynamicPartition DynamicStitch
    EnsureShape ExpandDims Fill Gather GatherNd GatherV2 InvertPermutation LinSpace
    MatrixBandPart MatrixDiagPartV3 MatrixDiagV3 MatrixSetDiagV3 MirrorPad OneHot
    OnesLike Pack Pad PadV2 ParallelDynamicStitch Range Rank Reshape ReverseSequence
    ReverseV2 Roll ScatterNd Shape ShapeN Size Slice Split SplitV Squeeze StridedSlice
    TensorScatterAdd TensorScatterMax TensorScatterMin TensorScatterSub
    TensorScatterUpdate TensorStridedSliceUpdate Tile Transpose Unique UniqueV2 Unpack
    ZerosLike
"""
_PRODUCTS = """
    AvgPool BatchMatMulV2 BatchMatMulV3 BiasAdd Conv2D DepthwiseConv2dNative
    Einsum FusedBatchNormV3 LogSoftmax MatMul MaxPool SegmentSum Softmax
    UnsortedSegmentMax UnsortedSegmentSum
"""
# Reproducible: all their randomness comes from a seed among their inputs.
_RANDOM = """
    StatelessMultinomial StatelessRandomGetAlg StatelessRandomGetKeyCounter
    StatelessRandomGetKeyCounterAlg StatelessRandomNormal StatelessRandomNormalV2
    StatelessRandomUniform StatelessRandomUniformV2 StatelessRandomUniformIntV2
"""
_LISTS_AND_TEXTS = """
    AsString EmptyTensorList RaggedGather RaggedRange RaggedTensorToTensor StringJoin
    StringLength StringLower StringStrip StringUpper Substr TensorListConcatV2
    TensorListElementShape TensorListFromTensor TensorListGather TensorListGetItem
    TensorListLength TensorListPopBack TensorListPushBack TensorListReserve
    TensorListResize TensorListSetItem TensorListStack UnicodeTranscode
"""

# Not among `tf.raw_ops`: TensorFlow for Linux on x86-64 has it, built with oneDNN.
ONEDNN_OPERATORS = frozenset({"_QuantizedMatMul"})

# Their results follow from their inputs alone.
PURE = frozenset(" ".join([_ARITHMETIC, _LOGIC, _SHAPES, _PRODUCTS]).split())

# What computes a result from its inputs and the weights.
COMPUTING = ONEDNN_OPERATORS | frozenset(
    " ".join(
        [_CALLS, _ARITHMETIC, _LOGIC, _SHAPES, _PRODUCTS, _RANDOM, _LISTS_AND_TEXTS]
    ).split()
)
# What a server runs besides when it loads the weights, and nothing else.
RESTORING = frozenset({"AssignVariableOp", "RestoreV2"})
# What makes weights of stored ones when they are loaded.
MAKING = frozenset({"AssignVariableOp"})
# What TensorFlow adds to save them again; a server never runs it.
SAVING = frozenset(
    """
    DisableCopyOnRead MergeV2Checkpoints SaveV2 ShardedFilename StaticRegexFullMatch
    """.split()
)

PYTHON_OPERATORS = frozenset({"PyFunc", "PyFuncStateless", "EagerPyFunc"})


def read_saved_model(path: str | os.PathLike[str]) -> Any:
    """The content of `saved_model.pb` in the folder of one version.

    Raises:
        DamagedFolderError: it holds no graph.
    """
    saved = saved_model_pb2.SavedModel()
    try:
        saved.ParseFromString((Path(path) / "saved_model.pb").read_bytes())
    except DecodeError:
        saved.Clear()
    if not saved.meta_graphs:
        raise DamagedFolderError(
            "saved_model.pb is not a SavedModel: restore it from a copy, or export the "
            f"model again. Received: {os.fspath(path)}"
        )
    return saved


def write_saved_model(path: str | os.PathLike[str], saved: Any) -> None:
    """Replaces `saved_model.pb` in the folder of one version."""
    data = saved.SerializeToString(deterministic=True)
    (Path(path) / "saved_model.pb").write_bytes(data)


def operators(path: str | os.PathLike[str]) -> dict[str, set[str]]:
    """The operators that each signature of a SavedModel can reach.

    Reads `saved_model.pb`; nothing is loaded or run.

    Args:
        path: folder of one version.

    Returns:
        Names of operators, those of all functions called included, by name of the
        signature; under `""` those of the initialisation, of saving and restoring.
    """
    saved = read_saved_model(path)
    graph = saved.meta_graphs[0].graph_def
    functions = {f.signature.name: f.node_def for f in graph.library.function}
    nodes = {node.name: node for node in graph.node}
    found: dict[str, set[str]] = {}
    reached: set[str] = set()
    for name, signature in saved.meta_graphs[0].signature_def.items():
        if not name.startswith("__"):
            outputs = [tensor.name for tensor in signature.outputs.values()]
            names = ancestors(nodes, outputs)
            found[name] = set(reachable([nodes[node] for node in names], functions))
            reached |= names
    rest = [node for name, node in nodes.items() if name not in reached]
    return {**found, "": set(reachable(rest, functions))}


def unservable(found: dict[str, set[str]]) -> set[str]:
    """Of the operators that `operators` returned, those that no server has."""
    return {
        name
        for names in found.values()
        for name in names - TEXT_OPERATORS - ONEDNN_OPERATORS
        if name in PYTHON_OPERATORS or not hasattr(tf.raw_ops, name)
    }


def tokenizer_models(path: str | os.PathLike[str]) -> set[bytes]:
    """The SentencePiece models in a SavedModel; nothing is loaded or run.

    Args:
        path: folder of one version.
    """
    saved = read_saved_model(path)
    nodes = (
        node
        for graph in saved.meta_graphs
        for part in (graph.graph_def.node, *functions_of(graph))
        for node in part
    )
    return {node.attr["model"].s for node in nodes if node.op == "SentencepieceOp"}


def functions_of(graph: Any) -> Iterator[Iterable[Any]]:
    """The nodes of each function of a `MetaGraphDef`."""
    return (function.node_def for function in graph.graph_def.library.function)


def ancestors(nodes: dict[str, Any], tensors: Iterable[str]) -> set[str]:
    """Names of the nodes that the given tensors are computed from."""
    found: set[str] = set()
    waiting = list(tensors)
    while waiting:
        name = node_of(waiting.pop())
        if name not in found:
            found.add(name)
            waiting.extend(nodes[name].input)
    return found


def node_of(source: str) -> str:
    """The node of `"node"`, `"^node"` (a control input), or `"node:output:0"`."""
    return source.removeprefix("^").split(":")[0]


def reachable(
    nodes: Iterable[Any], functions: dict[str, Iterable[Any]]
) -> Iterator[str]:
    """Operators of nodes and of all functions that they call, directly or not."""
    seen: set[str] = set()
    waiting = [nodes]
    while waiting:
        for node in waiting.pop():
            if node.op in functions:  # a function called like an operator
                called = [node.op]
            else:
                yield node.op
                called = called_functions(node)
            for name in called:
                if name not in seen:
                    seen.add(name)
                    waiting.append(functions[name])


def called_functions(node: Any) -> list[str]:
    """Names of the functions among the attributes of a node."""
    names: list[str] = []
    for value in node.attr.values():
        names.extend(function.name for function in value.list.func)
        if value.HasField("func"):
            names.append(value.func.name)
    return names
