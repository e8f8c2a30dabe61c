"""Functions of TensorFlow as ONNX graphs, by tf2onnx."""

import logging
from typing import Any

import numpy as np
import onnx
import tensorflow as tf
from tf2onnx import optimizer
from tf2onnx import tf_loader
from tf2onnx import tfonnx
from tf2onnx.graph_builder import GraphBuilder

INTEGERS = onnx.TensorProto.INT32, onnx.TensorProto.INT64

# A version of the operators that all runtimes support, browsers included.
OPSET = 17

# The optimizers that make files smaller; runtimes do the rest. tf2onnx's optimizer that
# joins reshapes is wrong: zeros in a shape stand for sizes of the input.
OPTIMIZERS = {
    "fold_constants": optimizer.ConstFoldOptimizer,
    "loop_optimizer": optimizer.LoopOptimizer,
    "merge_duplication": optimizer.MergeDuplicatedNodesOptimizer,
    "remove_identity": optimizer.IdentityOptimizer,
}


def onnx_call(model: Any, signature: Any, opset: int | None = None) -> bytes:
    """The ONNX graph of the `call` of a Keras model, with the output `logits`.

    Args:
        model: a built model.
        signature: the types of its arguments, nested `keras.InputSpec` with names.
        opset: the version of ONNX's operators; by default `OPSET`.

    Raises:
        ValueError: ONNX has no equivalent of an operator.
    """
    specs = tf.nest.map_structure(
        lambda x: tf.TensorSpec(x.shape, x.dtype, x.name), signature
    )
    names = [
        x.name or f"input_{number}" for number, x in enumerate(tf.nest.flatten(specs))
    ]

    def call(*inputs: Any) -> Any:
        return model(*inputs, training=False)

    graph = tf.function(call, specs, autograph=False, jit_compile=True)
    function = graph.get_concrete_function()
    return onnx_graph(function, names, ["logits"], opset).SerializeToString()


def onnx_graph(
    function: Any, inputs: list[str], outputs: list[str], opset: int | None = None
) -> onnx.ModelProto:
    """The ONNX graph of a concrete function, with its weights.

    Args:
        function: takes tensors and returns tensors.
        inputs, outputs: names for them, in their order.
        opset: the version of ONNX's operators; by default `OPSET`.

    Raises:
        ValueError: ONNX has no equivalent of an operator.
    """
    # tf2onnx logs its optimizations, and operators that it cannot convert.
    logging.getLogger("tf2onnx").setLevel(logging.CRITICAL)
    given, found = (
        [x.name for x in tensors if x.dtype != tf.resource]
        for tensors in (function.inputs, function.outputs)
    )
    frozen = tf_loader.from_function(function, given, found)
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(frozen, name="")
        converted = tfonnx.process_tf_graph(
            graph,
            continue_on_error=True,  # missing operators are listed below
            opset=opset or OPSET,
            custom_op_handlers={name: (f, []) for name, f in HANDLERS.items()},
            input_names=given,
            output_names=found,
            tensors_to_rename=dict(
                zip([*given, *found], [*inputs, *outputs], strict=True)
            ),
        )
    converted = optimizer.optimize_graph(converted, optimizers=OPTIMIZERS)
    model = converted.make_model("converted by keras_attnvariants")
    known = {schema.name for schema in onnx.defs.get_all_schemas()}
    if missing := {node.op_type for node in nodes(model.graph)} - known:
        raise ValueError(
            "`model` must use only operators that ONNX has. "
            f"Received: {', '.join(sorted(missing))}"
        )
    return model


def nodes(graph: Any) -> list[Any]:
    """The nodes of a graph, and of the graphs in its loops and branches."""
    found = list(graph.node)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                found += nodes(attribute.g)
    return found


# Converters of operators for tf2onnx, called with the graph, the node and its name.


def write_slice(graph: Any, node: Any, name: str, args: Any) -> None:
    """Writes a slice into a tensor: concatenates the parts before, the slice and after.

    The slice begins at 0 on all axes but one, on which it has a known number of
    positions.
    """
    x, new, begin = node.input
    shapes = graph.get_shape(x), graph.get_shape(new)
    pairs = enumerate(zip(*shapes, strict=True))
    differing = [axis for axis, (old, size) in pairs if old != size]
    graph.remove_node(name)
    if not differing:  # all of it is written
        graph.make_node("Identity", [new], outputs=node.output, name=name)
        return
    [axis] = differing
    builder = GraphBuilder(graph)
    begin = graph.make_node("Cast", [begin], {"to": onnx.TensorProto.INT64}).output[0]
    begin = builder.make_slice(
        {"data": begin, "starts": [axis], "ends": [axis + 1], "axes": [0]}
    )
    size = graph.make_const(f"{name}_size", np.array([shapes[1][axis]], "int64"))
    end = graph.make_node("Add", [begin, size.output[0]]).output[0]
    before, after = (
        builder.make_slice({"data": x, "starts": first, "ends": last, "axes": [axis]})
        for first, last in (([0], begin), (end, [np.iinfo("int64").max]))
    )
    graph.make_node(
        "Concat", [before, new, after], {"axis": axis}, outputs=node.output, name=name
    )


def floor_quotient(graph: Any, node: Any, name: str, args: Any) -> None:
    """A quotient rounded down, or its remainder; tf2onnx rounds integers to 0."""
    x, y = node.input
    if graph.get_dtype(x) in INTEGERS:
        divisible = one_output(graph, "Sub", x, one_output(graph, "Mod", x, y))
        quotient = one_output(graph, "Div", divisible, y)
    else:
        quotient = one_output(graph, "Floor", one_output(graph, "Div", x, y))
    graph.remove_node(name)
    if node.type == "FloorDiv":
        graph.make_node("Identity", [quotient], outputs=node.output, name=name)
    else:
        product = one_output(graph, "Mul", quotient, y)
        graph.make_node("Sub", [x, product], outputs=node.output, name=name)


def one_output(graph: Any, operator: str, *inputs: str) -> str:
    """The output of a new node."""
    return str(graph.make_node(operator, list(inputs)).output[0])


HANDLERS = {
    "XlaDynamicUpdateSlice": write_slice,
    "FloorDiv": floor_quotient,
    "FloorMod": floor_quotient,
}
