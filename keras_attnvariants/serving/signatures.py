"""The functions of an exported model: requests in, translations out."""

import functools
from collections.abc import Callable
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from typing import TypeAlias

import keras
import tensorflow as tf

from keras_attnvariants import backend
from keras_attnvariants.data import Shortlist
from keras_attnvariants.data import Tokenizer
from keras_attnvariants.decoding import IMPOSSIBLE
from keras_attnvariants.decoding import Hypotheses
from keras_attnvariants.decoding import beam_search
from keras_attnvariants.decoding import sample
from keras_attnvariants.decoding import score_tokens
from keras_attnvariants.models import SearchSettings
from keras_attnvariants.serving import inputs
from keras_attnvariants.serving.exported import ExportedModel
from keras_attnvariants.serving.exported import StoredWeights
from keras_attnvariants.serving.inputs import GraphSignature
from keras_attnvariants.serving.inputs import GraphTokenizer
from keras_attnvariants.serving.inputs import Input
from keras_attnvariants.serving.options import Options
from keras_attnvariants.serving.recordings import GraphRecordings
from keras_attnvariants.serving.searches import BucketedSearch
from keras_attnvariants.serving.searches import status_of_ids
from keras_attnvariants.serving.searches import with_status
from keras_attnvariants.serving.shortlisted import ShortlistedSteps
from keras_attnvariants.serving.translator import DEFAULT
from keras_attnvariants.serving.translator import TRANSLATE_WAV
from keras_attnvariants.serving.translator import Status
from keras_attnvariants.serving.verification import WRONG_PROCESSOR
from keras_attnvariants.utils.typing import Tensor

Search: TypeAlias = Callable[[Tensor, Tensor], Hypotheses]
# A function and its inputs; without inputs there is no signature.
Definition: TypeAlias = tuple[Callable[..., dict[str, Tensor]], Sequence[Input]]


@dataclass(eq=False)
class Signatures:
    """Builds the signatures of a model.

    Args:
        model: a step model, in the precision in which it is exported.
        options: options of the searches, and the limits.
        tokenizer: the tokenizer of the model; `None` for signatures of ids only.
        shortlist: which tokens translations may have; `None` for all.
        multiplies_integers: whether 8-bit integers are multiplied as such.
    """

    model: keras.Model
    options: Options
    tokenizer: Tokenizer | None
    shortlist: Shortlist | None
    multiplies_integers: bool

    def __post_init__(self) -> None:
        model, options, tokenizer = self.model, self.options, self.tokenizer
        self.weights = StoredWeights(model, self.multiplies_integers)

        def limited(steps: Any) -> Any:
            if self.shortlist is None or options.shortlist_width is None:
                return steps
            return ShortlistedSteps(steps, self.shortlist, options.shortlist_width)

        # `fast` translates; dequantized weights cannot be its constants, as they are
        # computed at loading. `exported` does everything else, in a smaller graph.
        is_constant = not self.weights.dequantized
        fast = limited(ExportedModel(model, self.weights, constant=is_constant))
        self.exported: Any = ExportedModel(model, self.weights, constant=False)
        # One graph finds both the best hypothesis and several.
        n_best = 1 if tokenizer is None else options.n_best
        self.nbest_search = BucketedSearch(fast, options, n_best)
        self.best_search = functools.partial(self.nbest_search, count=1)
        self.alignment_search = BucketedSearch(
            limited(self.exported), options, of_tokens=True
        )
        self.reader: Any = None
        self.target_tokenizer: Any = None
        if tokenizer is not None:
            longest = options.max_characters
            self.reader = GraphTokenizer(tokenizer.target, longest)
            self.target_tokenizer = self.reader
            if tokenizer.reads == "audio":
                self.reader = GraphRecordings(self.nbest_search.stride)
            elif tokenizer.target is not tokenizer:
                self.reader = GraphTokenizer(tokenizer, longest)
        settings = SearchSettings.of(model, length_penalty=options.length_penalty)
        self.search_options = inputs.search_options(settings, model.max_length)

    def functions(self) -> dict[str, GraphSignature]:
        """All signatures by name."""
        ids = inputs.SOURCE_IDS, inputs.LENGTHS
        defined: dict[str, Definition] = {"translate_ids": (self.translate_ids, ids)}
        if self.reader is not None:
            source = self.reader.inputs
            constraints = inputs.PREFIX, inputs.BLOCK_UNKNOWN, *self.search_options
            defined |= {
                DEFAULT: (self.translate, source),
                TRANSLATE_WAV: (self.translate_file, self.reader.files),
                "nbest": (self.nbest, source),
                "align": (self.align, source),
                "score": (self.score, (*self.reader.scored, inputs.TARGET)),
                "translate_with": (self.translate_with, (*source, *constraints)),
                "sample": (self.sample, (*source, *inputs.SAMPLE_OPTIONS)),
            }
        limit = self.options.max_batch
        exact = check_integers if self.multiplies_integers else None
        found = {
            name: GraphSignature(function, taken, limit, exact)
            for name, (function, taken) in defined.items()
            if taken
        }
        return {DEFAULT: found["translate_ids"], **found}

    def resources(self) -> tf.Module:
        """The weights and the tokenizer, which the functions need besides graphs."""
        module = tf.Module()
        # Tracking the model would store Keras' own functions and metadata too.
        module.weights = self.weights.variables
        module.dequantized = self.weights.dequantized
        if self.reader is not None:
            module.sentencepiece = getattr(self.reader, "sentencepiece", None)
            module.target_sentencepiece = self.target_tokenizer.sentencepiece
        return module

    def translate_ids(self, source_ids: Tensor, lengths: Tensor) -> dict[str, Tensor]:
        """The best hypothesis for each row of ids; needs no TensorFlow Text."""
        limit = self.options.max_tokens * self.nbest_search.stride
        size, pad_id = self.model.source_vocabulary_size, self.model.pad_id
        status = status_of_ids(source_ids, lengths, size, pad_id)
        lengths = tf.where(tf.equal(status, 0), lengths, 0)
        found = self.best_search(source_ids, tf.minimum(lengths, limit))
        found, status = with_status(found, status, pad_id)
        return {
            "ids": found.ids[:, 0],
            "lengths": found.lengths[:, 0],
            "scores": found.scores[:, 0],
            "truncated": lengths > limit,
            "status": status,
        }

    def translate(self, **source: Tensor) -> dict[str, Tensor]:
        """The best hypothesis for each source."""
        return self.run_search(source, self.best_search)[0]

    def translate_file(self, **file: Tensor) -> dict[str, Tensor]:
        """The best hypothesis for each file."""
        longest = self.options.max_tokens
        source, status = self.reader.read_files(*file.values(), max_tokens=longest)
        outputs = self.translate(**source)
        is_read = tf.equal(status, int(Status.OK))
        return {**outputs, "status": tf.where(is_read, outputs["status"], status)}

    def nbest(self, **source: Tensor) -> dict[str, Tensor]:
        """The best hypotheses for each source."""
        return self.run_search(source, self.nbest_search, which=slice(None))[0]

    def align(self, **source: Tensor) -> dict[str, Tensor]:
        """The best hypothesis for each source, with what its tokens attend to."""
        outputs, found, ids = self.run_search(source, self.alignment_search)
        return {
            **outputs,
            "pieces": self.target_tokenizer.pieces(found.ids[:, 0]),
            "source_pieces": self.reader.pieces(ids),
            "alignments": tf.identity(found.alignments)[:, 0],
            "token_log_probs": tf.identity(found.token_log_probs)[:, 0],
        }

    def score(self, target: Tensor, **source: Tensor) -> dict[str, Tensor]:
        """The probability of each target, given its source."""
        source_ids, _, source_is_cut, status = self.read(source)
        target_ids, _, target_is_cut = self.encode(target)
        scored = score_tokens(self.exported, source_ids, target_ids)
        return {
            "log_probs": tf.where(
                tf.equal(status, int(Status.OK)),
                tf.reduce_sum(scored.log_probs, axis=1),
                IMPOSSIBLE,
            ),
            "token_log_probs": scored.log_probs,
            "pieces": self.target_tokenizer.pieces(scored.ids),
            "lengths": scored.lengths,
            "truncated": tf.logical_or(source_is_cut, target_is_cut),
        }

    def translate_with(
        self, prefix: Tensor, block_unknown: Tensor, **values: Tensor
    ) -> dict[str, Tensor]:
        """The best hypothesis for each source, under constraints of its own."""
        options, is_valid = inputs.read_options(self.search_options, values)
        lowest, highest = options["min_length"], options["max_length"]
        # In the search a minimum yields to a maximum; only a default minimum may.
        is_omitted = tf.equal(values["min_length"], -1)
        is_valid &= is_omitted | tf.equal(highest, 0) | (lowest < highest)
        prefix_ids, prefix_lengths, prefix_is_cut = self.encode(prefix)
        # A prefix leaves room for EOS.
        is_valid &= tf.equal(highest, 0) | (prefix_lengths < highest)

        def search(ids: Tensor, lengths: Tensor) -> Hypotheses:
            return beam_search(
                self.exported,
                self.nbest_search.padded(ids, lengths),
                beam_size=self.options.beam_size,
                prefix=prefix_ids,
                block_unknown=block_unknown,
                **options,
            )

        outputs, found, _ = self.run_search(values, search, is_valid)
        truncated = tf.logical_or(outputs["truncated"], prefix_is_cut)
        return {**outputs, **log_probs_and_lengths(found), "truncated": truncated}

    def sample(self, **values: Tensor) -> dict[str, Tensor]:
        """A hypothesis for each source, drawn by its seed."""
        options, is_valid = inputs.read_options(inputs.SAMPLE_OPTIONS, values)

        def search(ids: Tensor, lengths: Tensor) -> Hypotheses:
            return sample(
                self.exported, self.nbest_search.padded(ids, lengths), **options
            )

        outputs, found, _ = self.run_search(values, search, is_valid)
        steps = tf.reduce_max(tf.concat([found.lengths[:, 0], [1]], axis=0))
        return {
            **outputs,
            **log_probs_and_lengths(found),
            "pieces": self.target_tokenizer.pieces(found.ids[:, 0, :steps]),
            "token_log_probs": tf.identity(found.token_log_probs)[:, 0, :steps],
        }

    def run_search(
        self,
        values: dict[str, Tensor],
        search: Search,
        is_valid: Tensor | None = None,
        which: int | slice = 0,
    ) -> tuple[dict[str, Tensor], Hypotheses, Tensor]:
        """Searches for each source: outputs, all hypotheses, and ids of the sources.

        Args:
            values: the inputs of the reader, and perhaps others.
            search: takes ids and lengths.
            is_valid: bool `[B]`, which sentences have options in range; by default all.
            which: the hypotheses in the outputs; by default the best.
        """
        source = {i.name: values[i.name] for i in self.reader.inputs}
        ids, lengths, is_cut, status = self.read(source)
        if is_valid is not None:
            wrong = tf.where(is_valid, int(Status.OK), int(Status.WRONG_OPTION))
            status = tf.where(tf.equal(status, 0), wrong, status)
            lengths = tf.where(is_valid, lengths, 0)
        found, status = with_status(search(ids, lengths), status, self.model.pad_id)
        chosen = found.ids[:, which], found.lengths[:, which]
        outputs = {
            "translations": self.target_tokenizer.decode(*chosen),
            "scores": found.scores[:, which],
            "truncated": is_cut,
            "status": status,
        }
        return outputs, found, ids

    def read(self, source: dict[str, Tensor]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Ids `[B, S]`, and `[B]` their lengths, whether they were cut, the status."""
        return self.reader.read(*source.values(), max_tokens=self.options.max_tokens)

    def encode(self, text: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Ids `[B, T]` of targets, and `[B]` their lengths, whether they were cut."""
        # Each target has BOS or EOS besides its tokens.
        longest = min(self.options.max_tokens, self.model.max_length - 1)
        return self.target_tokenizer.encode(text, longest)


def log_probs_and_lengths(found: Hypotheses) -> dict[str, Tensor]:
    """The log probability and the length of the best hypotheses, `[B]`."""
    return {"log_probs": found.log_probs[:, 0], "lengths": found.lengths[:, 0]}


def check_integers() -> Any:
    """An operator that fails where integers are not multiplied exactly.

    TensorFlow computes the products once, when it loads the graph.
    """
    return tf.debugging.Assert(backend.sums_exactly(), [WRONG_PROCESSOR])
