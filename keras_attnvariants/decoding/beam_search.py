"""Beam search with exact early stopping, in static shapes.

It works eagerly, under `keras_attnvariants.backend.jit` and in a SavedModel, there with
any batch size. A translation depends neither on the rest of the batch nor on padding,
unless the logits of the model do: in half precision, their last bits may follow the
shape of the batch.

Equal scores are decided in favor of the hypothesis that finished first, then of the
better parent, then of the smaller id.
"""

from typing import Any
from typing import NamedTuple

from keras import ops

from keras_attnvariants.backend import cast_matrices
from keras_attnvariants.decoding.beams import Beams
from keras_attnvariants.decoding.beams import collect_alignments
from keras_attnvariants.decoding.beams import select
from keras_attnvariants.decoding.candidates import find_candidates
from keras_attnvariants.decoding.constraints import Constraints
from keras_attnvariants.decoding.greedy_search import greedy_search
from keras_attnvariants.decoding.hypotheses import IMPOSSIBLE
from keras_attnvariants.decoding.hypotheses import Hypotheses
from keras_attnvariants.decoding.hypotheses import is_possible
from keras_attnvariants.decoding.hypotheses import length_factors
from keras_attnvariants.decoding.staged_search import StagedSearch
from keras_attnvariants.decoding.states import gather_beams
from keras_attnvariants.decoding.states import reorder
from keras_attnvariants.decoding.step_model import StepModel
from keras_attnvariants.decoding.token_ids import count_tokens
from keras_attnvariants.models import SearchSettings
from keras_attnvariants.utils.checks import check_integer
from keras_attnvariants.utils.typing import NestedTensors
from keras_attnvariants.utils.typing import Tensor


def beam_search(
    model: StepModel,
    source_ids: Any,
    beam_size: int | None = None,
    length_penalty: float | None = None,
    n_best: int = 1,
    min_length: int = 0,
    max_length: int | None = None,
    prefix: Any = None,
    block_unknown: bool = False,
    return_alignments: bool = False,
) -> Hypotheses:
    """Finds the translations of the highest length-normalized log probability.

    A hypothesis of length `|y|`, which counts EOS, scores
    `log p(y | x) * ((5 + 1) / (5 + |y|)) ** length_penalty` (Wu et al. 2016). Of the
    `2 K` best continuations at each position, those that end join the `n_best` finished
    hypotheses, and the `K` best others continue. A sentence is done when no live
    hypothesis can beat its worst finished one. `beam_size=1` is greedy search.

    Args:
        model: a step model, see `keras_attnvariants.decoding.StepModel`.
        source_ids: int `[B, S]`, padded on the right. A sentence without tokens
            has the empty translation, with log probability 0.
        beam_size: number `K` of live hypotheses.
        length_penalty: the larger, the longer the translations; 0 for no effect. By
            default, this and `beam_size` are those of the model's `search_settings`.
        n_best: number `N` of hypotheses to return; it may exceed `beam_size`.
        min_length: smallest number of tokens before EOS.
        max_length: largest number of tokens with EOS; by default those of the
            source plus `extra_length` of the model, at most `model.max_length`.
        prefix: int `[B, P]`, padded on the right: how each translation must start.
        block_unknown: whether to forbid UNK.
        return_alignments: whether to return attention over the source.

    Returns:
        `Hypotheses`: ids, scores, log_probs, lengths and alignments.

    Raises:
        ValueError: an argument is out of range or of a wrong shape.

    Example:
        >>> import keras_attnvariants as kav
        >>> attention = kav.DotProductAttention(num_heads=2)
        >>> model = kav.Transformer(100, 1, 8, 16, attention, attention, attention)
        >>> found = kav.beam_search(model, [[5, 6], [8, 0]], n_best=2, max_length=6)
        >>> tuple(found.ids.shape), tuple(found.scores.shape)
        ((2, 2, 6), (2, 2))
    """
    settings = SearchSettings.of(
        model, beam_size=beam_size, length_penalty=length_penalty
    )
    check_integer("n_best", n_best)
    options = (min_length, max_length, prefix, block_unknown)
    if settings.beam_size == n_best == 1:
        return greedy_search(
            model, source_ids, settings.length_penalty, *options, return_alignments
        )
    constraints = Constraints(model, source_ids, *options)
    with cast_matrices(model):
        search = _BeamSearch(model, constraints, settings, n_best, return_alignments)
        return search.hypotheses(search.run())


class _BeamState(NamedTuple):
    position: Tensor  # int32 scalar
    tokens: Tensor  # int32 [B, K], the last tokens of the live hypotheses
    live: Beams  # K, best first
    finished: Beams  # N, best first
    scores: Tensor  # float32 [B, N], of the finished ones
    done: Tensor  # bool [B]
    model_state: NestedTensors  # [B, K, ...]
    alignments: Tensor  # float32 [B, T, K, S] in the order of prediction, or ()


class _BeamSearch(StagedSearch):
    """One search over a batch, with all that does not change in its loop."""

    State = _BeamState
    RESULTS = ("finished", "scores", "alignments")

    def __init__(
        self,
        model: StepModel,
        constraints: Constraints,
        settings: SearchSettings,
        n_best: int,
        with_alignments: bool,
    ) -> None:
        super().__init__(model, constraints, settings.beam_size)
        self.n_best = n_best
        self.with_alignments = with_alignments
        penalty = settings.length_penalty
        self.factors = ops.convert_to_tensor(
            length_factors(self.max_length + 1, penalty)
        )
        self.longer_is_better = penalty >= 0

    def initial(self, room: int) -> _BeamState:
        model, empty = self.model, self.constraints.empty
        batch, source_length = ops.shape(self.constraints.source_ids)
        beams, n_best, steps = self.beams, self.n_best, self.max_length
        # All live hypotheses begin alike: only the first is possible.
        live = ops.where(ops.equal(ops.arange(beams), 0), 0.0, IMPOSSIBLE)
        # A sentence without tokens is done from the start: [EOS], with certainty.
        is_first = ops.equal(ops.arange(n_best), 0)
        is_empty = ops.logical_and(empty[:, None], is_first)
        scores = ops.where(is_empty, 0.0, IMPOSSIBLE)
        is_end = ops.logical_and(is_empty[:, :, None], ops.equal(ops.arange(steps), 0))
        finished_ids = ops.where(is_end, model.eos_id, model.pad_id)

        def paths(ids: Tensor) -> tuple[Tensor, ...]:
            return (ids, ops.zeros_like(ids)) if self.with_alignments else (ids,)

        alignments: Tensor = ()
        if self.with_alignments:
            shape = (batch, steps, beams, source_length)
            alignments = ops.zeros(shape, dtype="float32")
        return _BeamState(
            position=ops.convert_to_tensor(0, dtype="int32"),
            tokens=ops.full((batch, beams), model.bos_id, dtype="int32"),
            live=Beams(
                ops.zeros((batch, 1), dtype="float32") + live,
                paths(ops.full((batch, beams, steps), model.pad_id, dtype="int32")),
            ),
            finished=Beams(scores, paths(ops.cast(finished_ids, "int32"))),
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
        live = select(Beams(survivors, candidates.paths), log_probs, choice)
        done = self.is_decided(log_probs[:, 0], scores[:, -1], state.position)
        alignments: Tensor = ()
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

    def expand(self, state: _BeamState, logits: Tensor) -> tuple[Beams, Tensor, Tensor]:
        """The `2 K` best continuations, with their parents and last tokens.

        A parent has one continuation with EOS, so at least `K` others are among them.

        Args:
            state: before this position.
            logits: `[B, K, V]`.

        Returns:
            The continuations, and int32 `[B, 2 K]` each: parents and tokens.
        """
        values, tokens, normalizer = find_candidates(
            logits, self.constraints, state.position, 2 * self.beams
        )
        gains = state.live.log_probs[:, :, None] - normalizer
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
        return Beams(totals, paths), parents, tokens

    def finish(
        self, state: _BeamState, candidates: Beams, is_end: Tensor
    ) -> tuple[Beams, Tensor]:
        """The best finished hypotheses, old and new, and their scores `[B, N]`."""
        counts = ops.logical_and(is_end, is_possible(candidates.log_probs))
        counts = ops.logical_and(counts, ops.logical_not(state.done)[:, None])
        factor = ops.take(self.factors, state.position + 1)
        scores = ops.where(counts, candidates.log_probs * factor, IMPOSSIBLE)
        # Old ones first: they win ties, also against impossible candidates.
        pool = Beams(
            ops.concatenate([state.finished.log_probs, candidates.log_probs], axis=1),
            tuple(
                ops.concatenate(pair, axis=1)
                for pair in zip(state.finished.paths, candidates.paths, strict=True)
            ),
        )
        scores = ops.concatenate([state.scores, scores], axis=1)
        scores, choice = ops.top_k(scores, self.n_best)
        return select(pool, gather_beams(pool.log_probs, choice), choice), scores

    def is_decided(
        self, best_live: Tensor, worst_finished: Tensor, position: Tensor
    ) -> Tensor:
        """Whether the finished hypotheses cannot be beaten any more: bool `[B]`.

        Log probabilities only fall, so the score of a live hypothesis can reach at most
        its log probability times the best factor among the lengths it may end with.

        Args:
            best_live: log probability of the best live hypothesis, `[B]`.
            worst_finished: score of the worst finished hypothesis, `[B]`.
            position: int32 scalar.
        """
        best_length = position + 2
        if self.longer_is_better:
            best_length = self.constraints.limits
        bound = best_live * ops.take(self.factors, best_length)
        return ops.logical_or(
            ops.logical_not(is_possible(best_live)), bound <= worst_finished
        )

    def hypotheses(self, state: _BeamState) -> Hypotheses:
        """The results of the search in its final state."""
        ids = state.finished.paths[0]
        alignments = None
        if self.with_alignments:
            is_token = ops.not_equal(ids, self.model.pad_id)
            is_token = ops.logical_and(
                is_token, ops.logical_not(self.constraints.empty)[:, None, None]
            )
            alignments = collect_alignments(
                state.alignments, state.finished.paths[1], is_token
            )
        return Hypotheses(
            ids=ids,
            scores=state.scores,
            log_probs=state.finished.log_probs,
            lengths=count_tokens(ids, self.model.pad_id),
            alignments=alignments,
        )
