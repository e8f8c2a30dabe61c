"""Search position by position, in stages between which its tensors change size.

Most translations are about as long as their source, and most sentences of a batch are
done long before the last one. So a stage has room for a few positions only, because
attention reads all that there is room for. It ends as soon as a quarter of its
sentences are done, and the next stage continues with the others. One loop around the
loop over positions runs all stages, so a graph holds a decoding step only once.

XLA needs fixed shapes. There, a first stage has room for little more than the length of
the source, and a second one for all positions. A single sentence has one stage: it has
little to read, and its search compiles in half the time.
"""

import copy
from dataclasses import dataclass
from typing import Any
from typing import ClassVar
from typing import NamedTuple
from typing import Self

import keras
from keras import ops

from keras_attnvariants import backend
from keras_attnvariants.backend import at_most
from keras_attnvariants.decoding.constraints import Constraints
from keras_attnvariants.decoding.options import LengthNormalization
from keras_attnvariants.decoding.step_model import StepModel
from keras_attnvariants.decoding.step_model import for_decoding
from keras_attnvariants.decoding.step_model import pad_state
from keras_attnvariants.decoding.step_model import replace_rows
from keras_attnvariants.decoding.step_model import select_sentences
from keras_attnvariants.decoding.step_model import take_rows
from keras_attnvariants.decoding.step_model import with_structure_of
from keras_attnvariants.utils.typing import Size
from keras_attnvariants.utils.typing import Tensor

# Number of positions of the first stage beyond the length of the sources.
MARGIN = 8

# Where shapes may change: the number of positions at first, and the number added each
# time until there are `MARGIN` more than the sources have.
STRIDE = 16

# Where shapes may change: a stage ends when one in this many sentences is done.
DONE = 4

# Where shapes are fixed: the fewest positions for which a second stage is worth its
# compilation.
MIN_SECOND_STAGE = 16


# The log probability of a forbidden token or an empty slot of the beam. It is far below
# any sum of real log probabilities, but finite: infinity times zero would be NaN.
IMPOSSIBLE = -1e30

# Sums and products with `IMPOSSIBLE` are below this; real log probabilities above.
_BARELY_POSSIBLE = IMPOSSIBLE / 1e6


class Hypotheses(NamedTuple):
    """The `N` best translations of each of `B` sentences, best first.

    Each hypothesis ends with EOS and is padded with PAD to `T` positions. If a search
    finds fewer than `N`, the missing ones consist of PAD only, with length 0 and with
    `IMPOSSIBLE` (-1e30) as score and log probability.

    Attributes:
        ids: int32 `[B, N, T]`, tokens with their EOS.
        scores: float32 `[B, N]`, log probability after length normalization.
        log_probs: float32 `[B, N]`, log probability of the tokens with EOS.
        lengths: int32 `[B, N]`, number of tokens, EOS included.
        alignments: float32 `[B, N, T, S]`, attention over the source from which each
            token was predicted, 0 after EOS; `None` unless requested.
        token_log_probs: float32 `[B, N, T]`, log probability of each token, 0 after
            EOS; their sum is `log_probs`. `None` unless requested.
    """

    ids: Tensor
    scores: Tensor
    log_probs: Tensor
    lengths: Tensor
    alignments: Tensor | None = None
    token_log_probs: Tensor | None = None


def is_possible(log_probs: Tensor) -> Tensor:
    """A mask of the log probabilities of real hypotheses: bool, elementwise."""
    return log_probs > _BARELY_POSSIBLE


@dataclass(eq=False)
class StagedSearch:
    """A search over a batch, position by position; subclasses define a step.

    Its state is a named tuple of tensors that include `position`, `done` (bool `[B]`)
    and `model_state`. The batch is the first axis of all but the position.

    Attributes:
        model: a step model.
        constraints: which tokens are allowed.
        beams: number of hypotheses of a sentence, `K`.
        length_penalty: as for `LengthNormalization`.
        with_alignments: whether to return attention over the source.
        with_token_log_probs: whether to return log probabilities of tokens.
        State: the class of states.
        RESULTS: names of the state fields that hold the results.
        PER_SENTENCE: names of attributes with one value per sentence.
        max_length: number of positions.
        context: the encoded source.
    """

    State: ClassVar[type[Any]]
    RESULTS: ClassVar[tuple[str, ...]]
    PER_SENTENCE: ClassVar[tuple[str, ...]] = ("constraints", "normalization")

    model: StepModel
    constraints: Constraints
    beams: int
    length_penalty: Any
    with_alignments: bool
    with_token_log_probs: bool

    def __post_init__(self) -> None:
        source_ids, limits = self.constraints.source_ids, self.constraints.limits
        self.normalization = LengthNormalization(
            self.model, self.length_penalty, source_ids, limits
        )
        self.model = for_decoding(self.model)
        self.max_length = self.constraints.max_length
        self.context = self.model.encode(source_ids)

    def initial(self, room: int) -> Any:
        """The initial state; the model's state has room for `room` positions."""
        raise NotImplementedError(f"{type(self).__name__} has no `initial`.")

    def advance(self, state: Any) -> Any:
        """The state one position further."""
        raise NotImplementedError(f"{type(self).__name__} has no `advance`.")

    def step(self, tokens: Tensor, state: Any) -> tuple[Any, ...]:
        """Logits `[B, K, V]`, the model's state and, if requested, an alignment."""
        return self.model.step(
            tokens,
            state.position,
            state.model_state,
            self.context,
            return_attention_scores=self.with_alignments,
        )

    def for_rows(self, rows: Tensor, context: Any) -> Self:
        """The search for some sentences, int32 `[n]`, with their encoded sources."""
        part = copy.copy(self)
        part.context = context
        for name in self.PER_SENTENCE:
            setattr(part, name, select_sentences(getattr(self, name), rows))
        return part

    def run(self) -> Any:
        """A state with the results of the search; its other fields may be empty."""
        return self.run_in_fixed_shapes() if backend.in_xla() else self.run_in_stages()

    def run_in_fixed_shapes(self) -> Any:
        """Advances all sentences in at most two stages."""
        batch = ops.shape(self.constraints.source_ids)[0]
        source_length = self.constraints.source_width
        first, *second = stage_limits(batch, source_length, self.max_length)
        state = self.advance_by(first, self.initial(room=first))
        if second:
            state = self.with_room(self.max_length, state, self.context)
            state = self.advance_by(self.max_length - first, state)
        return state

    def run_in_stages(self) -> Any:
        """Advances the sentences that are not done, with room for the next positions.

        Returns:
            The results, with `()` for all other fields of the state.
        """
        first = at_most(self.constraints.source_width + MARGIN, self.max_length)
        start_room = backend.with_unknown_value(at_most(first, STRIDE))
        state = self.initial(room=start_room)
        results = [getattr(state, name) for name in self.RESULTS]
        limit = ops.convert_to_tensor(self.max_length, "int32")

        def stage(
            room: Tensor, rows: Tensor, results: Any, context: Any, state: Any
        ) -> tuple[Any, ...]:
            search, state = self.for_rows(rows, context), self.State(*state)
            state = search.advance_by(room - state.position, state, DONE)
            results = [
                replace_rows(old, getattr(state, name), rows)
                for old, name in zip(results, self.RESULTS, strict=True)
            ]
            going = ops.cast(ops.nonzero(~state.done)[0], "int32")
            rows, state = take_rows((rows, state), going)
            context = with_structure_of(context, take_rows(context, going))
            more = ops.where(room < first, ops.minimum(room + STRIDE, first), limit)
            room = ops.where(state.position < room, room, more)
            state = self.with_room(room, state, context)
            return room, rows, results, context, tuple(state)

        def is_unfinished(room: Tensor, rows: Tensor, *parts: Any) -> Tensor:
            state = self.State(*parts[-1])
            return ops.any(~state.done) & (state.position < limit)

        rows = ops.arange(ops.shape(state.done)[0], dtype="int32")
        parts = rows, results, self.context, tuple(state)
        parts = keras.tree.map_structure(backend.with_unknown_rows, parts)
        _, _, results, *_ = ops.while_loop(is_unfinished, stage, (start_room, *parts))
        empty = dict.fromkeys(self.State._fields, ())
        return self.State(**empty | dict(zip(self.RESULTS, results, strict=True)))

    def advance_by(self, positions: Size, state: Any, one_in: int = 1) -> Any:
        """Advances by a number of positions, or until enough sentences are done.

        Args:
            positions: how many, at most.
            state: the state so far.
            one_in: it is enough if one in this many sentences is done.
        """

        def is_stage(*state: Any) -> Tensor:
            done = self.State(*state).done
            return one_in * ops.sum(ops.cast(done, "int32")) < ops.shape(done)[0]

        state = ops.while_loop(
            is_stage,
            lambda *state: tuple(self.advance(self.State(*state))),
            tuple(state),
            maximum_iterations=positions,
        )
        return self.State(*state)

    def with_room(self, room: Size, state: Any, context: Any) -> Any:
        """The state of sentences with room for a number of positions.

        Args:
            room: the number of positions.
            state: state of the sentences.
            context: their encoded sources.
        """
        larger = self.model.initial_state(context, self.beams, room)
        return state._replace(model_state=pad_state(state.model_state, larger))


def stage_limits(batch: Size, source_length: int, max_length: int) -> tuple[int, ...]:
    """The position at which each stage ends.

    Args:
        batch: number of sentences.
        source_length: number of positions of the sources.
        max_length: the largest number of positions.
    """
    first, is_single = source_length + MARGIN, isinstance(batch, int) and batch == 1
    if is_single or first + MIN_SECOND_STAGE > max_length:
        return (max_length,)
    return first, max_length
