"""The base class of layers that concatenate neighbours and have no weights."""

from typing import Any

from keras import ops

from keras_attnvariants.attention.banded import slide
from keras_attnvariants.attention.calls import Call
from keras_attnvariants.attention.calls import Step
from keras_attnvariants.attention.calls import Widths
from keras_attnvariants.attention.calls import zero_masked
from keras_attnvariants.attention.multi_head import ProjectedAttention
from keras_attnvariants.utils.checks import check_integer
from keras_attnvariants.utils.typing import Memory
from keras_attnvariants.utils.typing import Size
from keras_attnvariants.utils.typing import State
from keras_attnvariants.utils.typing import Tensor


class NgramLayer(ProjectedAttention):
    """Base class of layers that apply a function to the window around each position.

    These layers have no weights over positions and no scores. Padding and positions
    outside the sequence count as zeros; a padded position has a context of 0.

    A layer is built either for encoders, with windows on both sides, or for decoders
    (`causal`): the two have weights of different shapes. In decoding, the state holds
    the last inputs of the window, whatever the length.

    Args:
        n: reach of the window to each side, in tokens, the position itself included.
        causal: whether the window ends with the position itself.
        use_bias, initializers, regularizers and constraints: as in
            `ProjectedAttention`.
    """

    roles = frozenset({"encoder", "decoder"})
    has_scores = False
    is_linear = True

    def __init__(self, n: int = 5, causal: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.n = check_integer("n", n)
        self.causal = causal
        self.roles = frozenset({"decoder" if causal else "encoder"})

    @property
    def before(self) -> int:
        """The number of positions in a window before its own."""
        return self.n - 1

    @property
    def reach(self) -> tuple[int, int]:
        """The numbers of positions in a window before and after its own."""
        return self.before, 0 if self.causal else self.before

    def make_layers(self, widths: Widths) -> None:
        self.input_dim = widths.value

    def attend(self, call: Call) -> tuple[Tensor, Tensor | None]:
        name, real = type(self).__name__, call.masks.key
        call.refuse_key(name)
        call.masks.refuse_pattern(name, "it has no weights over positions")
        if not self.causal:
            call.masks.refuse_causality(name, "for decoders, build it with causal=True")
        inputs = zero_masked(call.value, real)
        sentence = self.sentence_vector(call.value, real)
        context = self.contexts(self.vectors(inputs), sentence)
        return zero_masked(context, real), None

    def vectors(self, inputs: Tensor) -> Tensor:
        """The `V` vectors of each window: from `[B, L, d]` to `[B, L, V, d]`."""
        raise NotImplementedError(f"{type(self).__name__} does not define `vectors`.")

    def last_vectors(self, window: Tensor) -> Tensor:
        """The same for the last position only: `[B, K, W, d]` to `[B, K, V, d]`."""
        raise NotImplementedError(
            f"{type(self).__name__} does not define `last_vectors`."
        )

    def sentence_vector(self, value: Tensor, mask: Tensor | None) -> Tensor | None:
        """A vector that is an input at all positions of a sentence, or `None`."""
        return None

    def contexts(self, vectors: Tensor, sentence: Tensor | None = None) -> Tensor:
        """The context `[B, L, H, D]` from the vectors of each window."""
        raise NotImplementedError(f"{type(self).__name__} does not define `contexts`.")

    def initial_state(
        self, batch: Size, beams: int, max_length: int, memory: Memory = None
    ) -> State:
        """The last inputs, oldest first: `[B, K, slots, d]`."""
        if not self.causal:
            raise ValueError(
                f"`causal` must be True for decoding: otherwise the windows of "
                f"{type(self).__name__} contain later positions. "
                f"Received: causal={self.causal}"
            )
        shape = (batch, beams, self.before, self.input_dim)
        return {"inputs": ops.zeros(shape, self.compute_dtype)}

    def attend_step(self, step: Step) -> tuple[Tensor, Tensor | None, State]:
        query = ops.cast(step.query, self.compute_dtype)
        window, inputs = slide(step.state["inputs"], query)
        context = self.contexts(self.last_vectors(window))
        return context, None, {"inputs": inputs}


def concatenate(vectors: Tensor) -> Tensor:
    """`[..., V, d]` to `[..., V * d]`."""
    *lead, count, width = ops.shape(vectors)
    return ops.reshape(vectors, (*lead, count * width))
