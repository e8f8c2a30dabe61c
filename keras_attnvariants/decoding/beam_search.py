"""Beam search with exact early stopping.

The search works eagerly, under `keras_attnvariants.backend.jit`, and in a SavedModel,
where the batch size is free. A translation depends neither on the rest of the batch nor
on padding, unless the logits of the model do: their last bits may depend on the shape
of the batch, which matters in half precision.

A hypothesis of length `|y|`, including EOS, has the score
`log p(y | x) * ((5 + 1) / (5 + |y|)) ** length_penalty` (Wu et al. 2016). Of the `2 K`
best continuations at each position, those that end join the `N` finished hypotheses,
and the `K` best others continue. A sentence is done when no live hypothesis can beat
its worst finished one. Ties are decided in favour of the hypothesis that finished
first, then of the better parent, then of the smaller id.
"""

from dataclasses import dataclass
from typing import Any
from typing import NamedTuple

import keras
from keras import ops

from keras_attnvariants.backend import reshape
from keras_attnvariants.backend import sizes
from keras_attnvariants.backend import take
from keras_attnvariants.decoding.candidates import find_candidates
from keras_attnvariants.decoding.constraints import Constraints
from keras_attnvariants.decoding.greedy_search import GreedySearch
from keras_attnvariants.decoding.options import count_tokens
from keras_attnvariants.decoding.staged_search import IMPOSSIBLE
from keras_attnvariants.decoding.staged_search import Hypotheses
from keras_attnvariants.decoding.staged_search import StagedSearch
from keras_attnvariants.decoding.staged_search import is_possible
from keras_attnvariants.decoding.step_model import StepModel
from keras_attnvariants.decoding.step_model import collect_alignments
from keras_attnvariants.decoding.step_model import gather_all
from keras_attnvariants.decoding.step_model import gather_beams
from keras_attnvariants.decoding.step_model import reorder
from keras_attnvariants.models import SearchSettings
from keras_attnvariants.utils.checks import check_integer
from keras_attnvariants.utils.typing import NestedTensors
from keras_attnvariants.utils.typing import Tensor


def beam_search(
    model: StepModel,
    source_ids: Any,
    beam_size: int | None = None,
    length_penalty: Any = None,
    n_best: int = 1,
    min_length: Any = None,
    max_length: Any = None,
    prefix: Any = None,
    block_unknown: Any = False,
    return_alignments: bool = False,
    no_repeat_ngram: Any = None,
    return_token_log_probs: bool = False,
    needed: Tensor | None = None,
) -> Hypotheses:
    """Finds the translations with the highest length-normalized log probability.

    `length_penalty`, `min_length`, `max_length`, `block_unknown` and `no_repeat_ngram`
    are one value or, as a tensor or list `[B]`, one per sentence.

    Args:
        model: a step model, see `keras_attnvariants.decoding.StepModel`.
        source_ids: int `[B, S]`, padded on the right. A sentence without tokens
            has the empty translation, with log probability 0.
        beam_size: number `K` of live hypotheses. 1 is greedy search: the most probable
            token at each position, until EOS. Length normalization then changes only
            the score, not the translation.
        length_penalty: larger values favour longer translations; 0 for no effect. By
            default, this and `beam_size` are those of the model's `search_settings`.
        n_best: number `N` of hypotheses to return; it may exceed `beam_size`.
        min_length: minimum number of tokens before EOS; by default the model's value.
        max_length: maximum number of tokens with EOS; by default, and for sentences
            where it is 0, the source length plus the model's `extra_length`, at most
            `model.max_length`.
        prefix: int `[B, P]`, padded on the right: the start of each translation.
        block_unknown: whether to forbid UNK.
        return_alignments: whether to return attention over the source.
        no_repeat_ngram: no `n` tokens in a row occur twice in a translation; 0 for no
            limit; by default the model's value. A translation without an allowed token
            ends, even before `min_length`; in a beam, only if this is true of all
            hypotheses of the sentence.
        return_token_log_probs: whether to return the log probability of each token.
        needed: int32 scalar, number of the `n_best` that must be the best possible. The
            search ends when they are found; the others are the best so far. By default
            all.

    Returns:
        `Hypotheses`: ids, scores, log_probs, lengths and the requested extras.

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
    beam_size = SearchSettings.of(model, beam_size=beam_size).beam_size
    check_integer("n_best", n_best)
    options = (min_length, max_length, prefix, block_unknown, no_repeat_ngram)
    given = (model, Constraints(model, source_ids, *options), beam_size, length_penalty)
    wanted = (return_alignments, return_token_log_probs)
    if beam_size == n_best == 1:
        search: Any = GreedySearch(*given, *wanted)
    else:
        search = _BeamSearch(*given, *wanted, n_best, needed)
    return search.hypotheses(search.run())


class Beams(NamedTuple):
    """`M` hypotheses per sentence.

    Attributes:
        log_probs: float32 `[B, M]`.
        paths: `[B, M, T]` each, 0 or PAD where there is no token yet: the `ids`
            (int32) and, if requested, the beams that predicted each of them (`parents`,
            int32) and their log probabilities (`token_log_probs`, float32).
    """

    log_probs: Tensor
    paths: dict[str, Tensor]


class _BeamState(NamedTuple):
    position: Tensor  # int32 scalar
    tokens: Tensor  # int32 [B, K], the last tokens of the live hypotheses
    live: Beams  # K, best first
    finished: Beams  # N, best first
    scores: Tensor  # float32 [B, N], of the finished ones
    done: Tensor  # bool [B]
    model_state: NestedTensors  # [B, K, ...]
    alignments: Tensor  # float32 [B, T, K, S] in the order of prediction, or ()


@dataclass(eq=False)
class _BeamSearch(StagedSearch):
    """A beam search over a batch; the attributes are constant during the search."""

    State = _BeamState
    RESULTS = ("finished", "scores", "alignments")

    n_best: int
    needed: Tensor | None

    def initial(self, room: int) -> _BeamState:
        model, empty = self.model, self.constraints.empty
        batch = ops.shape(self.constraints.source_ids)[0]
        beams, steps = self.beams, self.max_length
        # All live hypotheses begin alike: only the first is possible.
        live = ops.where(ops.equal(ops.arange(beams), 0), 0.0, IMPOSSIBLE)
        # A sentence without tokens is done from the start: [EOS], with certainty.
        is_empty = empty[:, None] & ops.equal(ops.arange(self.n_best), 0)
        scores = ops.where(is_empty, 0.0, IMPOSSIBLE)
        is_end = is_empty[:, :, None] & ops.equal(ops.arange(steps), 0)
        finished_ids = ops.where(is_end, model.eos_id, model.pad_id)

        def paths(ids: Tensor) -> dict[str, Tensor]:
            found = {"ids": ids}
            if self.with_alignments:
                found["parents"] = ops.zeros_like(ids)
            if self.with_token_log_probs:
                found["token_log_probs"] = ops.zeros_like(ids, dtype="float32")
            return found

        shape = (batch, steps, beams, self.constraints.source_width)
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
            alignments=ops.zeros(shape, "float32") if self.with_alignments else (),
        )

    def advance(self, state: _BeamState) -> _BeamState:
        logits, model_state, *alignment = self.step(state.tokens, state)
        candidates, parents, tokens = self.expand(state, logits)
        is_end = ops.equal(tokens, self.model.eos_id)
        finished, scores = self.finish(state, candidates, is_end)

        survivors = ops.where(is_end, IMPOSSIBLE, candidates.log_probs)
        log_probs, choice = ops.top_k(survivors, self.beams)
        live = Beams(log_probs, gather_all(candidates.paths, choice))
        worst = scores[:, -1]
        if self.needed is not None:
            worst = take(scores, self.needed - 1, axis=1)
        # Log probabilities only decrease: the best live hypothesis can score at most
        # its log probability times the best factor of the lengths that it may reach.
        best = log_probs[:, 0]
        bound = best * self.normalization.best_from(state.position + 2)
        is_decided = ~is_possible(best) | (bound <= worst)
        alignments = state.alignments
        if self.with_alignments:
            is_now = ops.equal(ops.arange(self.max_length), state.position)
            is_now = is_now[:, None, None]
            alignments = ops.where(is_now, alignment[0][:, None], alignments)
        return _BeamState(
            position=state.position + 1,
            tokens=gather_beams(tokens, choice),
            live=live,
            finished=finished,
            scores=scores,
            done=state.done | is_decided,
            model_state=reorder(
                model_state, state.model_state, gather_beams(parents, choice)
            ),
            alignments=alignments,
        )

    def expand(self, state: _BeamState, logits: Tensor) -> tuple[Beams, Tensor, Tensor]:
        """The `2 K` best continuations, with their parents and last tokens.

        Each parent has one continuation with EOS, so at least `K` of these have none.

        Args:
            state: before this position.
            logits: `[B, K, V]`.

        Returns:
            The continuations, and int32 `[B, 2 K]` each: parents and tokens.
        """
        values, tokens, normalizer = find_candidates(
            logits,
            self.constraints,
            state.position,
            2 * self.beams,
            state.live.paths["ids"],
            is_possible(state.live.log_probs),
        )
        offsets = state.live.log_probs[:, :, None] - normalizer
        totals = ops.where(is_possible(values), values + offsets, IMPOSSIBLE)
        batch, beams, count = sizes(totals)
        totals = reshape(totals, (batch, beams * count))
        totals, index = ops.top_k(totals, 2 * beams)
        index = ops.cast(index, "int32")
        totals = ops.where(is_possible(totals), totals, IMPOSSIBLE)
        parents = index // count
        tokens = gather_beams(reshape(tokens, (batch, beams * count)), index)
        new = {"ids": tokens, "parents": parents}
        if self.with_token_log_probs:
            log_probs = reshape(values - normalizer, (batch, beams * count))
            log_probs = gather_beams(log_probs, index)
            new["token_log_probs"] = ops.maximum(log_probs, IMPOSSIBLE)
        is_now = ops.equal(ops.arange(self.max_length, dtype="int32"), state.position)
        paths = {
            name: ops.where(is_now, new[name][:, :, None], path)
            for name, path in gather_all(state.live.paths, parents).items()
        }
        return Beams(totals, paths), parents, tokens

    def finish(
        self, state: _BeamState, candidates: Beams, is_end: Tensor
    ) -> tuple[Beams, Tensor]:
        """The best finished hypotheses, old and new, and their scores `[B, N]`."""
        counts = is_end & is_possible(candidates.log_probs) & ~state.done[:, None]
        factors = self.normalization.at(state.position + 1)
        scores = ops.where(counts, candidates.log_probs * factors, IMPOSSIBLE)
        # The old ones come first, so they win ties, even with impossible candidates.
        pool, scores = keras.tree.map_structure(
            lambda *parts: ops.concatenate(parts, axis=1),
            (state.finished, state.scores),
            (candidates, scores),
        )
        scores, choice = ops.top_k(scores, self.n_best)
        return gather_all(pool, choice), scores

    def hypotheses(self, state: _BeamState) -> Hypotheses:
        """The results of the search in its final state."""
        ids = state.finished.paths["ids"]
        alignments = None
        if self.with_alignments:
            is_token = ops.not_equal(ids, self.model.pad_id)
            is_token &= ~self.constraints.empty[:, None, None]
            parents = state.finished.paths["parents"]
            alignments = collect_alignments(state.alignments, parents, is_token)
        return Hypotheses(
            ids=ids,
            scores=state.scores,
            log_probs=state.finished.log_probs,
            lengths=count_tokens(ids, self.model.pad_id),
            alignments=alignments,
            token_log_probs=state.finished.paths.get("token_log_probs"),
        )
