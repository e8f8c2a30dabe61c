"""Options of a request that each of its sentences has for itself.

Signatures of a SavedModel have no optional inputs. A client leaves an option to the
export by sending a value that means nothing else: -1 for integers, NaN for floats.
"""

from collections.abc import Callable
from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf

from keras_attnvariants.decoding.constraints import LONGEST
from keras_attnvariants.serving.inputs import Input
from keras_attnvariants.utils.typing import Tensor


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
