"""What signatures take: tensors with a name, checked when the graph runs.

Neither TensorFlow nor a server compares the shape of a request with the one that a
signature declares: without a check in the graph `[1, 20000]` would pass for one
sentence. And a graph that was traced with a declared shape may fold a check of it into
a constant. So graphs are traced for any rank, check it themselves, and the shape is
written into the signature afterwards, where clients read it.
"""

import os
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any
from typing import NamedTuple

import tensorflow as tf

from keras_attnvariants.decoding import IMPOSSIBLE
from keras_attnvariants.decoding import Hypotheses
from keras_attnvariants.serving.operators import read_saved_model
from keras_attnvariants.serving.operators import write_saved_model
from keras_attnvariants.serving.results import Status
from keras_attnvariants.utils.typing import Tensor

_AXES = ("sentences", "positions")


class Input(NamedTuple):
    """A tensor that a signature takes; its first axis has one entry per sentence.

    Attributes:
        name: of the tensor in requests.
        dtype: of the tensor.
        rank: number of its axes: 1 `[B]` or 2 `[B, S]`.
        doc: what it means.
    """

    name: str
    dtype: tf.DType
    rank: int
    doc: str

    @property
    def spec(self) -> tf.TensorSpec:
        """What the graph is traced for: any rank."""
        return tf.TensorSpec(None, self.dtype, self.name)

    @property
    def shape(self) -> list[None]:
        """What the signature declares: `None` for each size."""
        return [None] * self.rank


TEXT = Input("text", tf.string, 1, "texts to translate, UTF-8")
SOURCE = Input("source", tf.string, 1, "texts, UTF-8")
TARGET = Input("target", tf.string, 1, "a translation of each source, UTF-8")
SOURCE_IDS = Input(
    "source_ids", tf.int32, 2, "tokens of the sources without BOS and EOS"
)
LENGTHS = Input(
    "lengths", tf.int32, 1, "tokens of each row; what lies beyond may be anything"
)


class Signature:
    """A function of an exported model whose inputs are checked by their names.

    Args:
        function: takes a tensor for each input, and returns tensors by name.
        inputs: what it takes, in this order.
        max_batch: sentences in a request; more are an error.
        requirement: makes an operator that fails where the function cannot run.

    Attributes:
        graph: the `tf.function`.
    """

    def __init__(
        self,
        function: Callable[..., dict[str, Tensor]],
        inputs: Sequence[Input],
        max_batch: int,
        requirement: Callable[[], Any] | None = None,
    ) -> None:
        def checked(*values: Tensor) -> dict[str, Tensor]:
            required = [] if requirement is None else [requirement()]
            values = after(required, check_inputs(inputs, values, max_batch))
            return function(*values)

        self.inputs = tuple(inputs)
        self.graph = tf.function(checked, [i.spec for i in inputs], autograph=False)


def check_inputs(
    inputs: Sequence[Input], values: Sequence[Tensor], max_batch: int
) -> tuple[Tensor, ...]:
    """The values, unless a rank or a number of sentences is wrong.

    Then the graph fails with InvalidArgument, and a message that has the name of the
    input and its shape, and nothing of its content.

    Args:
        inputs: what the values are.
        values: tensors of any rank.
        max_batch: sentences, at most.
    """
    ranks = [
        tf.debugging.Assert(
            tf.equal(tf.size(tf.shape(value)), rank),
            [f"`{name}` must have the shape {axes(rank)}. Received:", tf.shape(value)],
        )
        for (name, _, rank, _), value in zip(inputs, values, strict=True)
    ]
    values = after(ranks, values)
    for i, value in zip(inputs, values, strict=True):
        # Not by `tf.ensure_shape`, which would fail before the check, without a name.
        value.set_shape(i.shape)
    first, *others = (tf.shape(value)[0] for value in values)
    name, *names = (i.name for i in inputs)
    too_many = tf.debugging.Assert(
        first <= max_batch,
        [f"`{name}` may hold at most {max_batch} sentences (max_batch). Received:"]
        + [first],
    )
    unequal = [
        tf.debugging.Assert(
            tf.equal(rows, first),
            [f"`{other}` must hold as many sentences as `{name}`. Received:", rows],
        )
        for other, rows in zip(names, others, strict=True)
    ]
    return after([too_many, *unequal], values)


def axes(rank: int) -> str:
    """A shape in words, such as `[sentences]`."""
    return f"[{', '.join(_AXES[:rank])}]"


def after(checks: Iterable[Any], values: Iterable[Tensor]) -> tuple[Tensor, ...]:
    """The values, once the checks have passed."""
    # Without the dependency an operator further on could fail first.
    with tf.control_dependencies(checks):
        return tuple(tf.identity(value) for value in values)


def declare_shapes(
    path: str | os.PathLike[str], signatures: dict[str, Signature]
) -> None:
    """Writes the shapes of all inputs into the signatures of a SavedModel.

    Args:
        path: folder of one version that nobody reads yet.
        signatures: those of the SavedModel, by name.
    """
    saved = read_saved_model(path)
    for graph in saved.meta_graphs:
        for name, signature in signatures.items():
            declared = graph.signature_def[name].inputs
            for i in signature.inputs:
                shape = tf.TensorShape(i.shape).as_proto()
                declared[i.name].tensor_shape.CopyFrom(shape)
    write_saved_model(path, saved)


def status_of_ids(
    ids: Tensor, lengths: Tensor, vocabulary_size: int, pad_id: int
) -> Tensor:
    """Whether rows of ids can be translated.

    Args:
        ids: int32 `[B, S]`; what is beyond the lengths is not looked at.
        lengths: int32 `[B]`.
        vocabulary_size: ids from 0 to below this are known.
        pad_id: of padding.

    Returns:
        int32 `[B]`, the first `Status` that applies.
    """
    width = tf.shape(ids)[1]
    is_read = tf.sequence_mask(lengths, width)
    problems = {
        Status.PADDING_INSIDE: tf.reduce_any(is_read & tf.equal(ids, pad_id), axis=1),
        Status.UNKNOWN_ID: tf.reduce_any(
            is_read & ((ids < 0) | (ids >= vocabulary_size)), axis=1
        ),
        Status.WRONG_LENGTH: (lengths < 0) | (lengths > width),
    }
    status = tf.zeros_like(lengths)
    for code, applies in problems.items():
        status = tf.where(applies, int(code), status)
    return status


def status_of_search(found: Hypotheses, status: Tensor) -> Tensor:
    """The status `[B]` of each row after a search, from that before it."""
    is_missing = tf.equal(found.lengths[:, 0], 0)
    nothing = tf.where(is_missing, int(Status.NOTHING_FOUND), int(Status.OK))
    return tf.where(tf.equal(status, int(Status.OK)), nothing, status)


def without_failed(found: Hypotheses, status: Tensor, pad_id: int) -> Hypotheses:
    """Hypotheses, where a row with another status than `OK` has none.

    As in `Hypotheses`, one that is missing consists of padding, with length 0 and
    `IMPOSSIBLE` as its score.
    """
    is_ok = tf.equal(status, int(Status.OK))[:, None]
    of_tokens = {
        "alignments": found.alignments,
        "token_log_probs": found.token_log_probs,
    }
    return found._replace(
        ids=tf.where(is_ok[:, :, None], found.ids, pad_id),
        scores=tf.where(is_ok, found.scores, IMPOSSIBLE),
        log_probs=tf.where(is_ok, found.log_probs, IMPOSSIBLE),
        lengths=tf.where(is_ok, found.lengths, 0),
        **{
            name: tf.where(broadcast(is_ok, value), value, 0.0)
            for name, value in of_tokens.items()
            if value is not None
        },
    )


def broadcast(rows: Tensor, values: Tensor) -> Tensor:
    """`[B, 1]` with as many axes as `values`."""
    return tf.reshape(rows, [-1] + [1] * (len(values.shape) - 1))
