"""The functions of an exported model: requests in, translations out."""

import functools
from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from keras_attnvariants.data import Shortlist
from keras_attnvariants.data import Tokenizer
from keras_attnvariants.decoding import Hypotheses
from keras_attnvariants.decoding import score_tokens
from keras_attnvariants.decoding.scoring import TokenScores
from keras_attnvariants.serving.exported import ExportedModel
from keras_attnvariants.serving.exported import StoredWeights
from keras_attnvariants.serving.inputs import LENGTHS
from keras_attnvariants.serving.inputs import SOURCE
from keras_attnvariants.serving.inputs import SOURCE_IDS
from keras_attnvariants.serving.inputs import TARGET
from keras_attnvariants.serving.inputs import TEXT
from keras_attnvariants.serving.inputs import Input
from keras_attnvariants.serving.inputs import Signature
from keras_attnvariants.serving.inputs import status_of_ids
from keras_attnvariants.serving.inputs import status_of_search
from keras_attnvariants.serving.inputs import without_failed
from keras_attnvariants.serving.options import Options
from keras_attnvariants.serving.processor import check_in_graph
from keras_attnvariants.serving.searches import BucketedSearch
from keras_attnvariants.serving.searches import ShortlistedSteps
from keras_attnvariants.serving.text import GraphTokenizer
from keras_attnvariants.utils.typing import Tensor


class Signatures:
    """Builds the signatures of a model that read token ids.

    Args:
        model: a step model, in the precision in which it is exported.
        options: of the search, and the limits.
        shortlist: which tokens translations may have; `None` for all.
        multiplies_integers: whether 8-bit integers are multiplied as such.
    """

    def __init__(
        self,
        model: keras.Model,
        options: Options,
        shortlist: Shortlist | None = None,
        multiplies_integers: bool = False,
    ) -> None:
        self.model = model
        self.options = options
        self.shortlist = shortlist
        self.multiplies_integers = multiplies_integers
        self.weights = StoredWeights(model, multiplies_integers)
        # Floats that are made of integers at loading are no constants.
        is_constant = not self.weights.dequantized
        # What translates, as fast as it can; the other does everything else, in a
        # smaller graph.
        self.searched = ExportedModel(model, self.weights, constant=is_constant)
        self.exported: Any = ExportedModel(model, self.weights, constant=False)
        self.best: Callable[[Tensor, Tensor], Hypotheses]
        self.best = BucketedSearch(self.limited(self.searched), options)

    def limited(self, steps: Any) -> Any:
        """A step model that chooses among the tokens of the shortlist, if any."""
        if self.shortlist is None or self.options.shortlist_width is None:
            return steps
        return ShortlistedSteps(steps, self.shortlist, self.options.shortlist_width)

    def functions(self) -> dict[str, Signature]:
        """All signatures by name."""
        translate_ids = self.signature(self.translate_ids, SOURCE_IDS, LENGTHS)
        return {"serving_default": translate_ids, "translate_ids": translate_ids}

    def signature(
        self, function: Callable[..., dict[str, Tensor]], *inputs: Input
    ) -> Signature:
        """A method of this class as a signature that checks its inputs."""
        exact = check_in_graph if self.multiplies_integers else None
        return Signature(function, inputs, self.options.max_batch, exact)

    def resources(self) -> tf.Module:
        """What the functions need besides their graphs."""
        module = tf.Module()
        # Tracking the model would store Keras' own functions and metadata too.
        module.weights = self.weights.variables
        module.dequantized = self.weights.dequantized
        return module

    def translate_ids(self, source_ids: Tensor, lengths: Tensor) -> dict[str, Tensor]:
        """The best translation of each row of ids; padding may hold anything."""
        limit = self.options.max_tokens
        size, pad_id = self.model.source_vocabulary_size, self.model.pad_id
        status = status_of_ids(source_ids, lengths, size, pad_id)
        lengths = tf.where(tf.equal(status, 0), lengths, 0)
        found, status = self.find(
            self.best, source_ids, tf.minimum(lengths, limit), status
        )
        return {
            "ids": found.ids[:, 0],
            "lengths": found.lengths[:, 0],
            "scores": found.scores[:, 0],
            "truncated": lengths > limit,
            "status": status,
        }

    def find(
        self,
        search: Callable[[Tensor, Tensor], Hypotheses],
        ids: Tensor,
        lengths: Tensor,
        status: Tensor | None = None,
    ) -> tuple[Hypotheses, Tensor]:
        """What a search finds, nothing for rows that fail, and the status of each.

        Args:
            search: takes ids and lengths.
            ids: int32 `[B, S]`.
            lengths: int32 `[B]`, 0 for rows that have failed already.
            status: int32 `[B]`, of each row so far; by default all are well.
        """
        found = search(ids, lengths)
        status = tf.zeros_like(lengths) if status is None else status
        status = status_of_search(found, status)
        return without_failed(found, status, self.model.pad_id), status


class TextSignatures(Signatures):
    """Builds all signatures of a model: of texts and of token ids.

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
        super().__init__(model, options, shortlist, multiplies_integers)
        self.tokenizer = GraphTokenizer(tokenizer, options.max_characters)
        # The best one and several come from the same graph.
        searched = self.limited(self.searched)
        self.several = BucketedSearch(searched, options, options.n_best)
        self.best = functools.partial(self.several, count=1)
        aligned = self.limited(self.exported)
        self.aligned = BucketedSearch(aligned, options, of_tokens=True)
        ids = tf.TensorSpec([None, None], tf.int32)
        self.score_tokens = tf.function(self.scored, [ids, ids], autograph=False)

    def functions(self) -> dict[str, Signature]:
        return super().functions() | {
            "serving_default": self.signature(self.translate, TEXT),
            "nbest": self.signature(self.nbest, TEXT),
            "align": self.signature(self.align, TEXT),
            "score": self.signature(self.score, SOURCE, TARGET),
        }

    def resources(self) -> tf.Module:
        module = super().resources()
        module.sentencepiece = self.tokenizer.sentencepiece
        return module

    def translate(self, text: Tensor) -> dict[str, Tensor]:
        """The best translation of each text."""
        ids, lengths, is_cut = self.encode(text)
        found, status = self.find(self.best, ids, lengths)
        return {
            "translations": self.tokenizer.decode(found.ids[:, 0], found.lengths[:, 0]),
            "scores": found.scores[:, 0],
            "truncated": is_cut,
            "status": status,
        }

    def nbest(self, text: Tensor) -> dict[str, Tensor]:
        """The `N` best translations of each text."""
        ids, lengths, is_cut = self.encode(text)
        found, status = self.find(self.several, ids, lengths)
        batch, count, width = tf.unstack(tf.shape(found.ids))
        translations = self.tokenizer.decode(
            tf.reshape(found.ids, [batch * count, width]),
            tf.reshape(found.lengths, [batch * count]),
        )
        return {
            "translations": tf.reshape(translations, [batch, count]),
            "scores": found.scores,
            "truncated": is_cut,
            "status": status,
        }

    def align(self, text: Tensor) -> dict[str, Tensor]:
        """The best translation of each text: its tokens, and what each comes from."""
        ids, lengths, is_cut = self.encode(text)
        found, status = self.find(self.aligned, ids, lengths)
        best = found.ids[:, 0]
        return {
            "translations": self.tokenizer.decode(best, found.lengths[:, 0]),
            "scores": found.scores[:, 0],
            "pieces": self.tokenizer.pieces(best),
            "source_pieces": self.tokenizer.pieces(ids),
            "alignments": tf.identity(found.alignments)[:, 0],
            "token_log_probs": tf.identity(found.token_log_probs)[:, 0],
            "truncated": is_cut,
            "status": status,
        }

    def score(self, source: Tensor, target: Tensor) -> dict[str, Tensor]:
        """Log probability of each target, and of its tokens, given its source."""
        source_ids, _, source_is_cut = self.encode(source)
        target_ids, _, target_is_cut = self.encode(target)
        scored = self.score_tokens(source_ids, target_ids)
        return {
            "log_probs": tf.reduce_sum(scored.log_probs, axis=1),
            "token_log_probs": scored.log_probs,
            "pieces": self.tokenizer.pieces(scored.ids),
            "lengths": scored.lengths,
            "truncated": tf.logical_or(source_is_cut, target_is_cut),
        }

    def scored(self, source_ids: Tensor, target_ids: Tensor) -> TokenScores:
        """The scores of the tokens of targets, given their sources."""
        return score_tokens(self.exported.inference_copy(), source_ids, target_ids)

    def encode(self, text: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Ids `[B, S]`, lengths `[B]` and what was cut `[B]`."""
        # A target has BOS or EOS besides its tokens.
        limit = min(self.options.max_tokens, self.model.max_length - 1)
        return self.tokenizer.encode(text, limit)
