"""The functions of an exported model: requests in, translations out."""

from typing import Any

import keras
import tensorflow as tf

from keras_attnvariants.data import Tokenizer
from keras_attnvariants.decoding import score
from keras_attnvariants.serving.options import Options
from keras_attnvariants.serving.searches import BucketedSearch
from keras_attnvariants.serving.text import GraphTokenizer
from keras_attnvariants.utils.typing import Tensor


class Signatures:
    """Builds the signatures of a model that read token ids.

    Args:
        model: a step model.
        options: of the search, and the limits.
    """

    def __init__(self, model: keras.Model, options: Options) -> None:
        self.model = model
        self.options = options
        self.best = BucketedSearch(model, options)

    def functions(self) -> dict[str, Any]:
        """A `tf.function` by name of the signature."""
        translate_ids = self.translate_ids_function()
        return {"serving_default": translate_ids, "translate_ids": translate_ids}

    def resources(self) -> tf.Module:
        """What the functions need besides their graphs."""
        module = tf.Module()
        # Tracking the model would store Keras' own functions and metadata too.
        module.weights = [weight.value for weight in self.model.weights]
        return module

    def translate_ids_function(self) -> Any:
        """`translate_ids` as a `tf.function`."""
        source_ids = tf.TensorSpec([None, None], tf.int32, "source_ids")
        lengths = tf.TensorSpec([None], tf.int32, "lengths")
        return tf.function(self.translate_ids, [source_ids, lengths])

    def translate_ids(self, source_ids: Tensor, lengths: Tensor) -> dict[str, Tensor]:
        """The best translation of each row of ids; padding may hold anything."""
        source_ids = self.checked_batch("source_ids", source_ids)
        source_ids = self.checked_ids(source_ids, lengths)
        limit = self.options.max_tokens
        found = self.best(source_ids, tf.minimum(lengths, limit))
        return {
            "ids": found.ids[:, 0],
            "lengths": found.lengths[:, 0],
            "scores": found.scores[:, 0],
            "truncated": lengths > limit,
        }

    def checked_batch(self, name: str, values: Tensor) -> Tensor:
        """`values`, unless they are more sentences than a request may hold."""
        limit = self.options.max_batch
        return checked(
            values,
            tf.shape(values)[0] <= limit,
            f"`{name}` may hold at most {limit} sentences (max_batch). Received:",
            tf.shape(values)[0],
        )

    def checked_ids(self, source_ids: Tensor, lengths: Tensor) -> Tensor:
        """`source_ids`, unless these or the lengths are out of range."""
        rows, width = tf.unstack(tf.shape(source_ids))
        lengths = checked(
            lengths,
            tf.equal(tf.size(lengths), rows),
            "`lengths` must hold one length per row of `source_ids`. Received:",
            tf.size(lengths),
        )
        lengths = checked(
            lengths,
            tf.reduce_all((lengths >= 0) & (lengths <= width)),
            "`lengths` must be between 0 and the width of `source_ids`. Received:",
            lengths,
        )
        size = self.model.source_vocabulary_size
        is_token = (source_ids >= 0) & (source_ids < size)
        is_token &= tf.not_equal(source_ids, self.model.pad_id)
        is_padding = ~tf.sequence_mask(lengths, width)
        return checked(
            source_ids,
            tf.reduce_all(is_token | is_padding),
            "`source_ids` must be ids of the vocabulary, and not of padding, in the "
            f"first `lengths` columns: not {self.model.pad_id}, and in "
            f"[0, {size}). Received:",
            source_ids,
        )


class TextSignatures(Signatures):
    """Builds all signatures of a model: of texts and of token ids.

    Args:
        model: a step model.
        options: of the searches, and the limits.
        tokenizer: the tokenizer of the model.
    """

    def __init__(
        self, model: keras.Model, options: Options, tokenizer: Tokenizer
    ) -> None:
        super().__init__(model, options)
        self.tokenizer = GraphTokenizer(tokenizer, options.max_characters)
        self.several = BucketedSearch(
            model, options, options.n_best, return_alignments=True
        )

    def functions(self) -> dict[str, Any]:
        text = tf.TensorSpec([None], tf.string, "text")
        source = tf.TensorSpec([None], tf.string, "source")
        target = tf.TensorSpec([None], tf.string, "target")
        return {
            "serving_default": tf.function(self.translate, [text]),
            "nbest": tf.function(self.nbest, [text]),
            "score": tf.function(self.score, [source, target]),
            "translate_ids": self.translate_ids_function(),
        }

    def resources(self) -> tf.Module:
        module = super().resources()
        module.sentencepiece = self.tokenizer.sentencepiece
        return module

    def translate(self, text: Tensor) -> dict[str, Tensor]:
        """The best translation of each text."""
        ids, lengths, is_cut = self.encode("text", text)
        found = self.best(ids, lengths)
        return {
            "translations": self.tokenizer.decode(found.ids[:, 0], found.lengths[:, 0]),
            "scores": found.scores[:, 0],
            "truncated": is_cut,
        }

    def nbest(self, text: Tensor) -> dict[str, Tensor]:
        """The `N` best translations of each text, aligned with their source."""
        ids, lengths, is_cut = self.encode("text", text)
        found = self.several(ids, lengths)
        batch, count, width = tf.unstack(tf.shape(found.ids))
        translations = self.tokenizer.decode(
            tf.reshape(found.ids, [batch * count, width]),
            tf.reshape(found.lengths, [batch * count]),
        )
        return {
            "translations": tf.reshape(translations, [batch, count]),
            "scores": found.scores,
            "alignments": found.alignments,
            "pieces": self.tokenizer.pieces(found.ids),
            "source_pieces": self.tokenizer.pieces(ids),
            "truncated": is_cut,
        }

    def score(self, source: Tensor, target: Tensor) -> dict[str, Tensor]:
        """Log probability of each target as a translation of its source."""
        target = checked(
            target,
            tf.equal(tf.size(source), tf.size(target)),
            "`target` must hold one text per text of `source`. Received:",
            tf.size(target),
        )
        source_ids, _, source_is_cut = self.encode("source", source)
        target_ids, _, target_is_cut = self.encode("target", target)
        log_probs, lengths = score(self.model, source_ids, target_ids)
        return {
            "log_probs": log_probs,
            "lengths": lengths,
            "truncated": tf.logical_or(source_is_cut, target_is_cut),
        }

    def encode(self, name: str, text: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Ids `[B, S]`, lengths `[B]` and what was cut `[B]`, of a checked batch."""
        # A target has BOS or EOS besides its tokens.
        limit = min(self.options.max_tokens, self.model.max_length - 1)
        return self.tokenizer.encode(self.checked_batch(name, text), limit)


def checked(
    values: Tensor, condition: Tensor, message: str, received: Tensor
) -> Tensor:
    """`values` if `condition` holds when the graph runs; else InvalidArgument."""
    check = tf.debugging.Assert(condition, [message, received], summarize=8)
    # Without the dependency an operator further on could fail first.
    with tf.control_dependencies([check]):
        return tf.identity(values)
