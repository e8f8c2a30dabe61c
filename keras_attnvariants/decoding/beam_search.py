"""Beam search with exact early stopping, in static shapes."""

from typing import Any
from typing import NamedTuple

from keras import ops

from keras_attnvariants.backend import cast_matrices
from keras_attnvariants.decoding.candidates import candidates
from keras_attnvariants.decoding.constraints import Constraints
from keras_attnvariants.decoding.constraints import check_search
from keras_attnvariants.decoding.constraints import count_tokens
from keras_attnvariants.decoding.greedy import greedy_search
from keras_attnvariants.decoding.hypotheses import IMPOSSIBLE
from keras_attnvariants.decoding.hypotheses import Hypotheses
from keras_attnvariants.decoding.hypotheses import is_possible
from keras_attnvariants.decoding.hypotheses import length_factors
from keras_attnvariants.decoding.stages import StagedSearch
from keras_attnvariants.decoding.step_model import gather_beams
from keras_attnvariants.decoding.step_model import reorder


def beam_search(
    model,
    source_ids,
    beam_size: int = 4,
    length_penalty: float = 0.6,
    n_best: int = 1,
    min_length: int = 0,
    max_length: int | None = None,
    prefix=None,
    block_unknown: bool = False,
    return_alignments: bool = False,
) -> Hypotheses:
    """Finds the translations of the highest length-normalised log probability.

    A hypothesis `y` of length `|y|`, which counts EOS, scores
    `log p(y | x) * ((5 + 1) / (5 + |y|)) ** length_penalty` (Wu et al. 2016). At each
    position the `2 K` best continuations are taken: those that end join the `n_best`
    finished ones, the `K` best others live on. A sentence is done as soon as no
    live hypothesis can beat its worst finished one whatever follows; from then on
    its result is frozen. `beam_size=1` is greedy search: the first EOS ends it.

    Works eagerly, under `keras_attnvariants.backend.jit` and in a SavedModel, there
    with any batch size. A translation depends neither on the rest of the batch nor
    on padding, as far as the logits of the model do not (in half precision their last
    bits may follow the shape of the batch). Equal scores are decided in favour of the
    hypothesis that finished first, then of the better parent, then of the smaller id.

    Args:
        model: a step model, see `keras_attnvariants.decoding.StepModel`.
        source_ids: int `[B, S]`, padded on the right. A sentence without tokens
            has the empty translation, with log probability 0.
        beam_size: number `K` of live hypotheses.
        length_penalty: the exponent. 0 compares log probabilities; the larger it
            is, the longer the translations.
        n_best: number `N` of hypotheses to return, at most `beam_size`.
        min_length: number of tokens before EOS, at least.
        max_length: number of tokens with EOS, at most. By default those of the
            source plus 50, at most `model.max_length`.
        prefix: int `[B, P]`, padded on the right: how each translation has to start.
        block_unknown: whether to forbid UNK.
        return_alignments: whether to return attention over the source.

    Returns:
        `Hypotheses`: ids, scores, log_probs, lengths and alignments.

    Raises:
        ValueError: an argument is out of range or of a wrong shape.

    Example:
        >>> import numpy as np
        >>> import keras_attnvariants as kav
        >>> attention = kav.DotProductAttention(num_heads=2)
        >>> model = kav.Transformer(100, 1, 8, 16, attention, attention, attention)
        >>> source_ids = np.array([[5, 6, 7], [8, 9, 0]])
        >>> found = kav.beam_search(model, source_ids, n_best=2, max_length=6)
        >>> tuple(found.ids.shape), tuple(found.scores.shape)
        ((2, 2, 6), (2, 2))
    """
    check_search(beam_size, length_penalty, n_best)
    options = (min_length, max_length, prefix, block_unknown)
    if beam_size == 1:
        return greedy_search(
            model, source_ids, length_penalty, *options, return_alignments
        )
    constraints = Constraints(model, source_ids, *options)
    with cast_matrices(model):
        search = _BeamSearch(
            model, constraints, beam_size, length_penalty, n_best, return_alignments
        )
        return search.hypotheses(search.run())


class _Beams(NamedTuple):
    """`M` hypotheses per sentence."""

    log_probs: Any  # float32 [B, M]
    # int32 [B, M, T] each: the ids and, for alignments, the live row that predicted.
    paths: tuple


class _BeamState(NamedTuple):
    position: Any  # int32 scalar
    tokens: Any  # int32 [B, K], the last tokens of the live hypotheses
    live: _Beams  # K, best first
    finished: _Beams  # N, best first
    scores: Any  # float32 [B, N], of the finished ones
    done: Any  # bool [B]
    model_state: Any  # nested [B, K, ...]
    alignments: Any  # float32 [B, T, K, S] in the order of prediction, or ()


class _BeamSearch(StagedSearch):
    """One search over a batch; holds what does not change in the loop."""

    State = _BeamState
    RESULTS = ("finished", "scores", "alignments")

    def __init__(
        self, model, constraints, beam_size, length_penalty, n_best, with_alignments
    ):
        super().__init__(model, constraints, beam_size)
        self.n_best = n_best
        self.with_alignments = with_alignments
        self.factors = ops.convert_to_tensor(
            length_factors(self.max_length + 1, length_penalty)
        )
        self.longer_is_better = length_penalty >= 0

    def initial(self, room: int) -> _BeamState:
        model, empty = self.model, self.constraints.empty
        batch, source_length = ops.shape(self.constraints.source_ids)
        beams, n_best, steps = self.beams, self.n_best, self.max_length
        # All live hypotheses begin alike, so only the first may count.
        live = ops.where(ops.equal(ops.arange(beams), 0), 0.0, IMPOSSIBLE)
        # A sentence without tokens is done from the start: [EOS], with certainty.
        is_first = ops.equal(ops.arange(n_best), 0)
        is_empty = ops.logical_and(empty[:, None], is_first)
        scores = ops.where(is_empty, 0.0, IMPOSSIBLE)
        is_end = ops.logical_and(is_empty[:, :, None], ops.equal(ops.arange(steps), 0))
        finished_ids = ops.where(is_end, model.eos_id, model.pad_id)

        def paths(ids):
            return (ids, ops.zeros_like(ids)) if self.with_alignments else (ids,)

        alignments = ()
        if self.with_alignments:
            shape = (batch, steps, beams, source_length)
            alignments = ops.zeros(shape, dtype="float32")
        return _BeamState(
            position=ops.convert_to_tensor(0, dtype="int32"),
            tokens=ops.full((batch, beams), model.bos_id, dtype="int32"),
            live=_Beams(
                ops.zeros((batch, 1), dtype="float32") + live,
                paths(ops.full((batch, beams, steps), model.pad_id, dtype="int32")),
            ),
            finished=_Beams(scores, paths(ops.cast(finished_ids, "int32"))),
            scores=scores,
            done=empty,
            model_state=model.initial_state(self.context, beams, room),
            alignments=alignments,
        )

    def advance(self, state: _BeamState) -> _BeamState:
        logits, model_state, *alignment = self.model.step(
            state.tokens,
            state.position,
            state.model_state,
            self.context,
            return_attention_scores=self.with_alignments,
        )
        candidates, parents, tokens = self.expand(state, logits)
        is_end = ops.equal(tokens, self.model.eos_id)
        finished, scores = self.finish(state, candidates, is_end)

        survivors = ops.where(is_end, IMPOSSIBLE, candidates.log_probs)
        log_probs, choice = ops.top_k(survivors, self.beams)
        live = _select(_Beams(survivors, candidates.paths), log_probs, choice)
        done = self.is_decided(log_probs[:, 0], scores[:, -1], state.position)
        alignments = ()
        if self.with_alignments:
            is_now = ops.equal(ops.arange(self.max_length), state.position)
            alignments = ops.where(
                is_now[:, None, None], alignment[0][:, None], state.alignments
            )
        return _BeamState(
            position=state.position + 1,
            tokens=gather_beams(tokens, choice),
            live=live,
            finished=finished,
            scores=scores,
            done=ops.logical_or(state.done, done),
            model_state=reorder(
                model_state, state.model_state, gather_beams(parents, choice)
            ),
            alignments=alignments,
        )

    def expand(self, state: _BeamState, logits):
        """The `2 K` best continuations, with their parents and last tokens.

        A parent has one continuation by EOS, so at least `K` others are among them.
        """
        values, tokens, total = candidates(
            logits, self.constraints, state.position, 2 * self.beams
        )
        gains = state.live.log_probs[:, :, None] - total
        totals = ops.where(is_possible(values), values + gains, IMPOSSIBLE)
        batch, beams, count = ops.shape(totals)
        totals = ops.reshape(totals, (batch, beams * count))
        totals, index = ops.top_k(totals, 2 * beams)
        index = ops.cast(index, "int32")
        totals = ops.where(is_possible(totals), totals, IMPOSSIBLE)
        parents = index // count
        tokens = gather_beams(ops.reshape(tokens, (batch, beams * count)), index)
        is_now = ops.equal(ops.arange(self.max_length), state.position)
        paths = tuple(
            ops.where(is_now, value[:, :, None], gather_beams(path, parents))
            for path, value in zip(state.live.paths, (tokens, parents), strict=False)
        )
        return _Beams(totals, paths), parents, tokens

    def finish(self, state: _BeamState, candidates: _Beams, is_end):
        """The best finished hypotheses, old and new, and their scores."""
        counts = ops.logical_and(is_end, is_possible(candidates.log_probs))
        counts = ops.logical_and(counts, ops.logical_not(state.done)[:, None])
        factor = ops.take(self.factors, state.position + 1)
        scores = ops.where(counts, candidates.log_probs * factor, IMPOSSIBLE)
        # Old ones first: they win ties, against impossible candidates above all.
        pool = _Beams(
            ops.concatenate([state.finished.log_probs, candidates.log_probs], axis=1),
            tuple(
                ops.concatenate(pair, axis=1)
                for pair in zip(state.finished.paths, candidates.paths, strict=True)
            ),
        )
        scores = ops.concatenate([state.scores, scores], axis=1)
        scores, choice = ops.top_k(scores, self.n_best)
        return _select(pool, gather_beams(pool.log_probs, choice), choice), scores

    def is_decided(self, best_live, worst_finished, position):
        """True for sentences whose finished hypotheses cannot be beaten any more.

        Log probabilities only fall, so a live hypothesis can reach at most what it
        has times the best factor among the lengths it may end with.
        """
        best_length = position + 2
        if self.longer_is_better:
            best_length = self.constraints.limits
        bound = best_live * ops.take(self.factors, best_length)
        return ops.logical_or(
            ops.logical_not(is_possible(best_live)), bound <= worst_finished
        )

    def hypotheses(self, state: _BeamState) -> Hypotheses:
        ids = state.finished.paths[0]
        alignments = None
        if self.with_alignments:
            alignments = self.trace(state)
        return Hypotheses(
            ids=ids,
            scores=state.scores,
            log_probs=state.finished.log_probs,
            lengths=count_tokens(ids, self.model.pad_id),
            alignments=alignments,
        )

    def trace(self, state: _BeamState):
        """Collects alignments `[B, N, T, S]` from the rows that predicted them."""
        ids, rows = state.finished.paths
        weights = state.alignments
        batch, steps, beams, source_length = ops.shape(weights)
        weights = ops.reshape(weights, (batch, steps * beams, source_length))
        index = rows + beams * ops.arange(steps, dtype="int32")  # [B, N, T]
        index = ops.reshape(index, (batch, self.n_best * steps))
        weights = ops.reshape(
            gather_beams(weights, index), (batch, self.n_best, steps, source_length)
        )
        is_token = ops.not_equal(ids, self.model.pad_id)
        is_token = ops.logical_and(
            is_token, ops.logical_not(self.constraints.empty)[:, None, None]
        )
        return ops.where(is_token[:, :, :, None], weights, 0.0)


def _select(beams: _Beams, log_probs, choice) -> _Beams:
    return _Beams(log_probs, tuple(gather_beams(path, choice) for path in beams.paths))
