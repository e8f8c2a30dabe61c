"""Signatures with options for each sentence, so that servers may merge requests."""

from collections.abc import Callable
from collections.abc import Sequence
from typing import Any
from typing import NamedTuple

import keras
import tensorflow as tf

from keras_attnvariants.data import Shortlist
from keras_attnvariants.data import Tokenizer
from keras_attnvariants.decoding import Hypotheses
from keras_attnvariants.decoding import beam_search
from keras_attnvariants.decoding import sample
from keras_attnvariants.decoding.constraints import LONGEST
from keras_attnvariants.serving.inputs import TEXT
from keras_attnvariants.serving.inputs import Input
from keras_attnvariants.serving.inputs import Signature
from keras_attnvariants.serving.options import Options
from keras_attnvariants.serving.results import Status
from keras_attnvariants.serving.signatures import TextSignatures
from keras_attnvariants.utils.typing import Tensor


class SentenceSignatures(TextSignatures):
    """All signatures, those with options for each sentence among them.

    Args:
        model: a step model.
        options: of the searches, and the limits.
        tokenizer: the tokenizer of the model.
        shortlist, multiplies_integers: as of `Signatures`.
    """

    def __init__(
        self,
        model: keras.Model,
        options: Options,
        tokenizer: Tokenizer,
        shortlist: Shortlist | None = None,
        multiplies_integers: bool = False,
    ) -> None:
        super().__init__(model, options, tokenizer, shortlist, multiplies_integers)
        self.search_options = search_options(options.length_penalty, model.max_length)

    def functions(self) -> dict[str, Signature]:
        searching = [option.input for option in self.search_options]
        sampling = [option.input for option in SAMPLE_OPTIONS]
        return super().functions() | {
            "translate_with": self.signature(
                self.translate_with, TEXT, PREFIX, BLOCK_UNKNOWN, *searching
            ),
            "sample": self.signature(self.sample, TEXT, *sampling),
        }

    def translate_with(
        self, text: Tensor, prefix: Tensor, block_unknown: Tensor, *values: Tensor
    ) -> dict[str, Tensor]:
        """The best translation of each text, under constraints of its own."""
        options, is_valid = read_options(self.search_options, values)
        lowest, highest = options["min_length"], options["max_length"]
        is_valid &= tf.equal(highest, 0) | (lowest < highest)
        prefix_ids, _, prefix_is_cut = self.encode(prefix)

        def search(ids: Tensor, lengths: Tensor) -> Hypotheses:
            return beam_search(
                self.exported,
                self.several.padded(ids, lengths),
                beam_size=self.options.beam_size,
                prefix=prefix_ids,
                block_unknown=block_unknown,
                **options,
            )

        outputs, _ = self.translated(text, is_valid, search)
        truncated = tf.logical_or(outputs["truncated"], prefix_is_cut)
        return {**outputs, "truncated": truncated}

    def sample(self, text: Tensor, *values: Tensor) -> dict[str, Tensor]:
        """A translation of each text, drawn by its seed."""
        options, is_valid = read_options(SAMPLE_OPTIONS, values)

        def search(ids: Tensor, lengths: Tensor) -> Hypotheses:
            return sample(self.exported, self.several.padded(ids, lengths), **options)

        outputs, found = self.translated(text, is_valid, search)
        steps = tf.reduce_max(tf.concat([found.lengths[:, 0], [1]], axis=0))
        return {
            **outputs,
            "pieces": self.tokenizer.pieces(found.ids[:, 0, :steps]),
            "token_log_probs": tf.identity(found.token_log_probs)[:, 0, :steps],
        }

    def translated(
        self, text: Tensor, is_valid: Tensor, search: Any
    ) -> tuple[dict[str, Tensor], Hypotheses]:
        """The outputs of both signatures, and the hypotheses.

        Args:
            text: string `[B]`.
            is_valid: bool `[B]`, which sentences have options in range.
            search: takes ids and lengths.
        """
        ids, lengths, is_cut = self.encode(text)
        status = tf.where(is_valid, int(Status.OK), int(Status.WRONG_OPTION))
        found, status = self.find(
            search, ids, tf.where(is_valid, lengths, 0), tf.cast(status, tf.int32)
        )
        outputs = {
            "translations": self.tokenizer.decode(found.ids[:, 0], found.lengths[:, 0]),
            "scores": found.scores[:, 0],
            "log_probs": found.log_probs[:, 0],
            "lengths": found.lengths[:, 0],
            "truncated": is_cut,
            "status": status,
        }
        return outputs, found


class SentenceOption(NamedTuple):
    """An input with one value per sentence, and a default.

    Attributes:
        input: its name, type and meaning.
        default: what stands in the place of -1 or NaN.
        is_valid: which values, of the dtype of the input, are in range: bool `[B]`.
    """

    input: Input
    default: float
    is_valid: Callable[[Tensor], Tensor]

    def read(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """Values `[B]`, all in range, and bool `[B]`, which were given as they are."""
        is_omitted = (
            tf.math.is_nan(values) if values.dtype.is_floating else tf.equal(values, -1)
        )
        default = tf.cast(self.default, values.dtype)
        values = tf.where(is_omitted, default, values)
        is_valid = self.is_valid(values)
        return tf.where(is_valid, values, default), is_valid


def read_options(
    options: Sequence[SentenceOption], values: Sequence[Tensor]
) -> tuple[dict[str, Tensor], Tensor]:
    """The values of options by name, and which sentences have all in range, `[B]`."""
    found = {
        option.input.name: option.read(tensor)
        for option, tensor in zip(options, values, strict=True)
    }
    all_valid = tf.reduce_all([is_valid for _, is_valid in found.values()], axis=0)
    return {name: tensor for name, (tensor, _) in found.items()}, all_valid


def option(
    name: str,
    dtype: tf.DType,
    doc: str,
    default: float,
    is_valid: Callable[[Tensor], Tensor],
    means: str = "",
) -> SentenceOption:
    """An option whose description says how it is left to the export.

    Args:
        name, dtype, doc: of the input.
        default, is_valid: see `SentenceOption`.
        means: what the default is, in words, if not its value.
    """
    omitted = "NaN" if dtype.is_floating else "-1"
    doc = f"{doc}; {omitted} for the default, {means or default}"
    return SentenceOption(Input(name, dtype, 1, doc), default, is_valid)


PREFIX = Input("prefix", tf.string, 1, "how each translation begins, UTF-8; '' for any")
BLOCK_UNKNOWN = Input("block_unknown", tf.bool, 1, "whether to forbid unknown tokens")


def search_options(
    length_penalty: float, model_max_length: int
) -> tuple[SentenceOption, ...]:
    """What `translate_with` takes besides texts, prefixes and `block_unknown`.

    Args:
        length_penalty: of the export.
        model_max_length: positions that the model has.
    """
    return (
        option(
            "min_length",
            tf.int32,
            f"least number of tokens, EOS not counted, below {model_max_length}",
            0,
            lambda x: (x >= 0) & (x < model_max_length),
        ),
        option(
            "max_length",
            tf.int32,
            "largest number of tokens, EOS counted, from 1 to "
            f"{model_max_length}, and above min_length",
            0,
            lambda x: (x >= 0) & (x <= model_max_length),
            "some more than the text has",
        ),
        option(
            "length_penalty",
            tf.float32,
            "exponent of the length normalisation",
            length_penalty,
            tf.math.is_finite,
        ),
        option(
            "no_repeat_ngram",
            tf.int32,
            f"no so many tokens in a row twice, at most {LONGEST}; 0 for any",
            0,
            lambda x: (x >= 0) & (x <= LONGEST),
        ),
    )


SAMPLE_OPTIONS = (
    option(
        "temperature",
        tf.float32,
        "below 1, probable words become more so; 0 is greedy search",
        1.0,
        lambda x: tf.math.is_finite(x) & (x >= 0),
    ),
    option(
        "top_k",
        tf.int32,
        "how many words may be drawn; 0 for all",
        0,
        lambda x: x >= 0,
    ),
    option(
        "top_p",
        tf.float32,
        "draw from the fewest words that have this probability together",
        1.0,
        lambda x: (x > 0) & (x <= 1),
    ),
    option(
        "seed",
        tf.int32,
        "of the random numbers; the same gives the same translation",
        0,
        lambda x: x >= 0,
    ),
)
