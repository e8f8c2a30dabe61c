"""Signatures with options for each sentence, so that servers may merge requests."""

from typing import Any

import keras
import tensorflow as tf

from keras_attnvariants.data import Shortlist
from keras_attnvariants.data import Tokenizer
from keras_attnvariants.decoding import Hypotheses
from keras_attnvariants.decoding import beam_search
from keras_attnvariants.decoding import sample
from keras_attnvariants.serving.inputs import TEXT
from keras_attnvariants.serving.inputs import Signature
from keras_attnvariants.serving.options import Options
from keras_attnvariants.serving.sentence_options import BLOCK_UNKNOWN
from keras_attnvariants.serving.sentence_options import PREFIX
from keras_attnvariants.serving.sentence_options import SAMPLE_OPTIONS
from keras_attnvariants.serving.sentence_options import read_options
from keras_attnvariants.serving.sentence_options import search_options
from keras_attnvariants.serving.signatures import TextSignatures
from keras_attnvariants.serving.status import Status
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
