"""Inputs of signatures: tensors with a name, checked when the graph runs; texts as ids.

Neither TensorFlow nor a server compares the shape of a request with the signature's:
without a check in the graph, `[1, 20000]` would pass for one sentence. But a graph that
was traced with a declared shape may fold such a check into a constant. So graphs are
traced for any rank and check it themselves. The shape is written into the signature
afterwards, where clients read it.
"""

import inspect
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from keras_attnvariants.data import Tokenizer
from keras_attnvariants.decoding.constraints import LONGEST
from keras_attnvariants.models import SearchSettings
from keras_attnvariants.utils.typing import Tensor

_LONGEST_CHARACTER = 4  # bytes in UTF-8

# In words, by the number of axes.
_SHAPES = {1: "[sentences]", 2: "[sentences, positions]"}


class Input(NamedTuple):
    """A tensor that a signature takes; its first axis has one entry per sentence.

    Attributes:
        name: name of the tensor in requests.
        dtype: dtype of the tensor.
        meaning: in words.
        rank: number of its axes: 1 `[B]` or 2 `[B, S]`.
        default: value of an option for -1 or NaN; `None` for other inputs.
        lowest, highest: the range of an option; `None` for the largest of its dtype.
    """

    name: str
    dtype: tf.DType
    meaning: str
    rank: int = 1
    default: float | None = None
    lowest: float = 0
    highest: float | None = None

    @property
    def doc(self) -> str:
        """The meaning; for an option, also the value that selects its default."""
        if self.default is None:
            return self.meaning
        omitted = "NaN" if self.dtype.is_floating else "-1"
        return f"{self.meaning}; {omitted} for the default, {self.default}"

    @property
    def shape(self) -> list[None]:
        """The shape that the signature declares: `None` for each size."""
        return [None] * self.rank

    @property
    def omitted(self) -> npt.NDArray[Any]:
        """The value that selects the default of an option, for one sentence."""
        values = {tf.string: b"", tf.bool: False, tf.float32: np.nan, tf.int32: -1}
        return np.full([1] * self.rank, values[self.dtype], self.dtype.as_numpy_dtype)

    def in_range(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """Values `[B]` of an option, and bool `[B]`, whether the given one is valid.

        The default replaces values that are omitted or invalid.
        """
        default = tf.constant(self.default, self.dtype)
        is_float = self.dtype.is_floating
        is_omitted = tf.math.is_nan(values) if is_float else tf.equal(values, -1)
        values = tf.where(is_omitted, default, values)
        highest = self.dtype.max if self.highest is None else self.highest
        is_valid = (values >= self.lowest) & (values <= highest)
        return tf.where(is_valid, values, default), is_valid


TEXT = Input("text", tf.string, "sources, UTF-8")
SOURCE = Input("source", tf.string, "texts, UTF-8")
TARGET = Input("target", tf.string, "a possible output for each source, UTF-8")
SOURCE_IDS = Input(
    "source_ids", tf.int32, "tokens of the sources without BOS and EOS", rank=2
)
LENGTHS = Input("lengths", tf.int32, "tokens of each row; the rest is ignored")
PREFIX = Input("prefix", tf.string, "how each hypothesis begins, UTF-8; '' for any")
BLOCK_UNKNOWN = Input("block_unknown", tf.bool, "whether to forbid unknown tokens")

_COLD = "below 1 favours probable words; 0 is greedy search"
_FEWEST = "draw from the fewest words whose probabilities sum to this"
_SEED = "seed of the random numbers; the same seed gives the same hypothesis"
# Zero is not a probability.
_LEAST = float(np.finfo("float32").tiny)
SAMPLE_OPTIONS = (
    Input("temperature", tf.float32, _COLD, default=1.0),
    Input("top_k", tf.int32, "how many words may be drawn; 0 for all", default=0),
    Input("top_p", tf.float32, _FEWEST, default=1.0, lowest=_LEAST, highest=1),
    Input("seed", tf.int32, _SEED, default=0),
)


def search_options(settings: SearchSettings, max_length: int) -> tuple[Input, ...]:
    """The options of `translate_with` for each sentence.

    Args:
        settings: those of the export, which are the defaults.
        max_length: positions that the model has.
    """
    least = f"least number of tokens, EOS not counted, below {max_length}"
    most = (
        f"largest number of tokens, EOS counted, from 1 to {max_length}, and above a "
        "min_length that is given; 0 for a few more than the text has"
    )
    exponent = "exponent of the length normalisation"
    repeats = (
        f"length of the n-grams that may not occur twice, at most {LONGEST}; 0 for none"
    )
    finite, penalty = tf.float32.min, settings.length_penalty
    fewest = min(settings.min_length, max_length - 1)
    ngram = min(settings.no_repeat_ngram, LONGEST)
    return (
        Input("min_length", tf.int32, least, default=fewest, highest=max_length - 1),
        Input("max_length", tf.int32, most, default=0, highest=max_length),
        Input("length_penalty", tf.float32, exponent, default=penalty, lowest=finite),
        Input("no_repeat_ngram", tf.int32, repeats, default=ngram, highest=LONGEST),
    )


def read_options(
    options: Sequence[Input], values: dict[str, Tensor]
) -> tuple[dict[str, Tensor], Tensor]:
    """Values of options by name, and bool `[B]`: all of a sentence are in range."""
    found = {each.name: each.in_range(values[each.name]) for each in options}
    all_valid = tf.reduce_all([is_valid for _, is_valid in found.values()], axis=0)
    return {name: tensor for name, (tensor, _) in found.items()}, all_valid


class GraphSignature:
    """A function of an exported model whose inputs are checked by their names.

    Args:
        function: takes a tensor for each input by its name, and returns tensors by
            name.
        inputs: what it takes.
        max_batch: sentences in a request; more are an error.
        requirement: makes an operator that fails where the function cannot run.

    Attributes:
        doc: what it returns, in words.
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
            names = (i.name for i in inputs)
            return function(**dict(zip(names, values, strict=True)))

        self.doc = inspect.getdoc(function)
        self.inputs = tuple(inputs)
        # Any rank, as it is checked by the graph.
        specs = [tf.TensorSpec(None, i.dtype, i.name) for i in inputs]
        self.graph = tf.function(checked, specs, autograph=False)


def check_inputs(
    inputs: Sequence[Input], values: Sequence[Tensor], max_batch: int
) -> tuple[Tensor, ...]:
    """The values, unless a rank or a number of sentences is wrong.

    Otherwise the graph fails with InvalidArgument. The message has the name of the
    input and its shape, but nothing of its content.

    Args:
        inputs: descriptions of the values.
        values: tensors of any rank.
        max_batch: sentences, at most.
    """
    ranks = [
        require(
            tf.equal(tf.size(tf.shape(value)), i.rank),
            f"`{i.name}` must have the shape {_SHAPES[i.rank]}",
            tf.shape(value),
        )
        for i, value in zip(inputs, values, strict=True)
    ]
    values = after(ranks, values)
    for i, value in zip(inputs, values, strict=True):
        # Not `tf.ensure_shape`: it would fail before the check, without a name.
        value.set_shape(i.shape)
    first, *others = (tf.shape(value)[0] for value in values)
    name, *names = (i.name for i in inputs)
    limit = f"`{name}` may hold at most {max_batch} sentences (max_batch)"
    checks = [require(first <= max_batch, limit, first)]
    for other, rows in zip(names, others, strict=True):
        equal = f"`{other}` must hold as many sentences as `{name}`"
        checks.append(require(tf.equal(rows, first), equal, rows))
    return after(checks, values)


def require(condition: Tensor, message: str, received: Tensor) -> Any:
    """An operator that fails unless a condition holds."""
    return tf.debugging.Assert(condition, [f"{message}. Received:", received])


def after(checks: Iterable[Any], values: Iterable[Tensor]) -> tuple[Tensor, ...]:
    """The values, once the checks have passed."""
    # Without the dependency an operator further on could fail first.
    with tf.control_dependencies(checks):
        return tuple(tf.identity(value) for value in values)


def declare_shapes(saved: Any, signatures: dict[str, GraphSignature]) -> None:
    """Writes the shapes of all inputs into the signatures of a SavedModel.

    Args:
        saved: the content of `saved_model.pb`, which is changed.
        signatures: those of the SavedModel, by name.
    """
    for graph in saved.meta_graphs:
        for name, signature in signatures.items():
            declared = graph.signature_def[name].inputs
            for i in signature.inputs:
                shape = tf.TensorShape(i.shape).as_proto()
                declared[i.name].tensor_shape.CopyFrom(shape)


class GraphTokenizer:
    """A tokenizer as TensorFlow operators, with limits that hold in the graph.

    Args:
        tokenizer: the tokenizer to run.
        max_characters: characters of a text that are read; the rest is cut off.

    Attributes:
        inputs, scored: inputs of signatures that translate, and that score.
        files: those of signatures that translate whole files: none.
        sentencepiece: the `tensorflow_text` tokenizer, which a SavedModel has to
            track because it owns a resource.
    """

    inputs, scored = (TEXT,), (SOURCE,)
    files: tuple[Input, ...] = ()

    def __init__(self, tokenizer: Tokenizer, max_characters: int) -> None:
        self.sentencepiece = tokenizer.tf_tokenizer()
        self.pad_id = tokenizer.pad_id
        self.max_characters = max_characters

    def encode(self, text: Tensor, max_tokens: int) -> tuple[Tensor, Tensor, Tensor]:
        """Token ids of texts without BOS and EOS.

        Args:
            text: string `[B]`; bytes that are not UTF-8 are read as U+FFFD.
            max_tokens: tokens of a text that are kept.

        Returns:
            ids int32 `[B, S]` padded on the right, lengths int32 `[B]`, and bool
            `[B]`, True for texts that were cut.
        """
        text, is_cut = self.cut(text)
        tokens = self.sentencepiece.tokenize(text)
        lengths = tf.cast(tokens.row_lengths(), tf.int32)
        ids = tokens[:, :max_tokens].to_tensor(self.pad_id)
        is_cut = tf.logical_or(is_cut, lengths > max_tokens)
        return ids, tf.minimum(lengths, max_tokens), is_cut

    def read(
        self, text: Tensor, max_tokens: int
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """`encode` for sources, with their status, int32 `[B]`: every text is valid."""
        ids, lengths, is_cut = self.encode(text, max_tokens)
        return ids, lengths, is_cut, tf.zeros_like(lengths)

    def cut(self, text: Tensor) -> tuple[Tensor, Tensor]:
        """Valid UTF-8 of at most `max_characters` characters, and bool: was cut."""
        # Bounds the work on huge texts. A character that this splits lies beyond
        # the limit, where the next cut removes what remains of it.
        longest = _LONGEST_CHARACTER * (self.max_characters + 1)
        text = tf.strings.substr(text, 0, longest, unit="BYTE")
        text = tf.strings.unicode_transcode(text, "UTF-8", "UTF-8", errors="replace")
        is_cut = tf.strings.length(text, unit="UTF8_CHAR") > self.max_characters
        text = tf.strings.substr(text, 0, self.max_characters, unit="UTF8_CHAR")
        return text, is_cut

    def decode(self, ids: Tensor, lengths: Tensor) -> Tensor:
        """Texts of ids `[…, T]`, of which the first `lengths - 1` are read.

        Returns:
            string `[…]`. The last token is the EOS; a length of 0 gives `""`.
        """
        rows = tf.reshape(ids, [tf.size(lengths), tf.shape(ids)[-1]])
        counts = tf.reshape(tf.maximum(lengths - 1, 0), [-1])
        texts = self.sentencepiece.detokenize(tf.RaggedTensor.from_tensor(rows, counts))
        return tf.reshape(texts, tf.shape(lengths))

    def pieces(self, ids: Tensor) -> Tensor:
        """The piece of every id, `""` for padding: string, of the shape of `ids`."""
        pieces = self.sentencepiece.id_to_string(ids)
        return tf.where(tf.equal(ids, self.pad_id), "", pieces)
