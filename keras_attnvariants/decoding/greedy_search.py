"""Greedy search: the most probable token, position by position."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from keras import ops

from keras_attnvariants.backend import take
from keras_attnvariants.decoding.candidates import find_candidates
from keras_attnvariants.decoding.options import count_tokens
from keras_attnvariants.decoding.staged_search import IMPOSSIBLE
from keras_attnvariants.decoding.staged_search import Hypotheses
from keras_attnvariants.decoding.staged_search import StagedSearch
from keras_attnvariants.decoding.step_model import with_structure_of
from keras_attnvariants.utils.typing import NestedTensors
from keras_attnvariants.utils.typing import Tensor


class _State(NamedTuple):
    position: Tensor  # int32 scalar
    tokens: Tensor  # int32 [B], the previous tokens
    # [B, T]: `ids` (int32) and, if requested, `token_log_probs` (float32)
    paths: dict[str, Tensor]
    log_probs: Tensor  # float32 [B]
    done: Tensor  # bool [B]
    model_state: NestedTensors  # [B, 1, ...]
    alignments: Tensor  # float32 [B, T, S], or () if they are not requested


def most_probable(values: Tensor, position: Tensor) -> Tensor:
    """The next candidate: the one with the largest logit.

    Args:
        values: float32 `[B, 1, M]`, their logits; see `find_candidates`.
        position: int32 scalar.

    Returns:
        int `[B, 1]`.
    """
    return ops.argmax(values, axis=-1)


@dataclass(eq=False)
class GreedySearch(StagedSearch):
    """A search over a batch that keeps one hypothesis per sentence.

    Attributes:
        choose: chooses among candidates, as `most_probable` does.
        count: number of candidates that `choose` needs, or `None` for all.
    """

    State = _State
    RESULTS = ("paths", "log_probs", "alignments")
    PER_SENTENCE = ("constraints", "choose")

    choose: Callable[[Tensor, Tensor], Tensor] = most_probable
    count: int | None = 1

    def initial(self, room: int) -> _State:
        model, empty = self.model, self.constraints.empty
        batch = ops.shape(self.constraints.source_ids)[0]
        # A sentence without tokens is done from the start: [EOS], with certainty.
        ids = ops.full((batch, self.max_length), model.pad_id, dtype="int32")
        is_end = empty[:, None] & ops.equal(ops.arange(self.max_length), 0)
        paths = {"ids": ops.where(is_end, model.eos_id, ids)}
        if self.with_token_log_probs:
            paths["token_log_probs"] = ops.zeros_like(ids, dtype="float32")
        shape = (batch, self.max_length, self.constraints.source_width)
        return _State(
            position=ops.convert_to_tensor(0, dtype="int32"),
            tokens=ops.full((batch,), model.bos_id, dtype="int32"),
            paths=paths,
            log_probs=ops.zeros((batch,), dtype="float32"),
            done=empty,
            model_state=model.initial_state(self.context, 1, room),
            alignments=ops.zeros(shape, "float32") if self.with_alignments else (),
        )

    def advance(self, state: _State) -> _State:
        logits, model_state, *alignment = self.step(state.tokens[:, None], state)
        ids = state.paths["ids"][:, None]
        values, tokens, normalizer = find_candidates(
            logits, self.constraints, state.position, self.count, ids
        )
        best = self.choose(values, state.position)
        chosen, tokens = (
            take(found[:, 0], best, axis=1, batch_axes=1)[:, 0]
            for found in (values, tokens)
        )
        log_prob = ops.maximum(chosen - normalizer[:, 0, 0], IMPOSSIBLE)
        tokens = ops.where(state.done, self.model.pad_id, tokens)
        is_now = ops.equal(ops.arange(self.max_length), state.position)
        is_now = is_now & ~state.done[:, None]
        new = {"ids": tokens[:, None], "token_log_probs": log_prob[:, None]}
        alignments = state.alignments
        if self.with_alignments:
            alignments = ops.where(is_now[:, :, None], alignment[0], alignments)
        return _State(
            position=state.position + 1,
            tokens=tokens,
            paths={n: ops.where(is_now, new[n], x) for n, x in state.paths.items()},
            log_probs=state.log_probs + ops.where(state.done, 0.0, log_prob),
            done=state.done | ops.equal(tokens, self.model.eos_id),
            model_state=with_structure_of(state.model_state, model_state),
            alignments=alignments,
        )

    def hypotheses(self, state: _State) -> Hypotheses:
        """The results of the search in its final state."""
        lengths = count_tokens(state.paths["ids"], self.model.pad_id)[:, None]
        log_probs = state.log_probs[:, None]
        return Hypotheses(
            **{name: path[:, None] for name, path in state.paths.items()},
            scores=log_probs * self.normalization.of(lengths),
            log_probs=log_probs,
            lengths=lengths,
            alignments=state.alignments[:, None] if self.with_alignments else None,
        )
