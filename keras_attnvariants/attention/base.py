"""The interface that every attention variant implements.

Axis letters: `B` batch, `K` beams, `T` target (query) length, `S` source (key)
length, `H` heads, `D` head width.

A variant subclasses `BaseAttention`, or one of the classes in `multi_head` that add
projections, heads and a softmax. It defines

* `make_layers`: its weights;
* `attend`: whole sequences at once, for training and encoding;
* `prepare`, `initial_state`, `attend_step`: one position at a time, for decoding.
"""

import inspect
from collections.abc import Mapping
from typing import Any

import keras
from keras import ops

from keras_attnvariants.attention.calls import Call
from keras_attnvariants.attention.calls import Masks
from keras_attnvariants.attention.calls import Step
from keras_attnvariants.attention.calls import Widths
from keras_attnvariants.attention.calls import check_inputs
from keras_attnvariants.attention.calls import check_memory
from keras_attnvariants.attention.calls import check_returned
from keras_attnvariants.attention.calls import check_scores_wanted
from keras_attnvariants.attention.calls import combine_masks
from keras_attnvariants.attention.calls import without_keras_options
from keras_attnvariants.attention.calls import zero_masked
from keras_attnvariants.attention.registry import Saved
from keras_attnvariants.utils.typing import Memory
from keras_attnvariants.utils.typing import Shape
from keras_attnvariants.utils.typing import Size
from keras_attnvariants.utils.typing import State
from keras_attnvariants.utils.typing import Tensor

# The key of a state whose tensors all hypotheses of a sentence share.
SHARED = "shared"


class BaseAttention(Saved, keras.layers.Layer):
    """Base class of the attention variants: a drop-in for `MultiHeadAttention`.

    It defines `call` and `step`, applies the query mask, and checks the arguments and
    the values that the variant returns.

    Masking: Keras masks of `query`, `value` and `key` are used, and the query mask is
    passed on. The content of padded keys never changes a real position. A query
    without visible keys has a context of exactly 0, and so does a query that
    `query_mask` excludes.

    Class attributes:
        roles: where the layer can be used: encoder, decoder, cross. An instance may
            have fewer roles than its class.
        has_scores: whether the layer has weights over positions. A variant without
            them refuses `return_attention_scores`.
        is_linear: whether time and memory of a call are linear in length, without an
            `attention_mask` and without scores, and those of a step do not depend on
            it.
        num_heads: number of heads `H`; 1 unless the variant sets it.
        refused: the arguments of a call that the layer cannot honour, with reasons:
            some of `key`, `attention_mask` and `use_causal_mask`. An instance may have
            its own.
    """

    roles: frozenset[str] = frozenset()
    has_scores: bool = True
    is_linear: bool = False
    num_heads: int = 1
    refused: Mapping[str, str] = {}

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**without_keras_options(type(self).__name__, kwargs))
        self.supports_masking = True

    def build(
        self,
        query_shape: Shape,
        value_shape: Shape | None = None,
        key_shape: Shape | None = None,
    ) -> None:
        value_shape = value_shape or query_shape
        shapes = query_shape, key_shape or value_shape, value_shape
        self.make_layers(Widths(*(shape[-1] for shape in shapes)))

    def make_layers(self, widths: Widths) -> None:
        """Creates all weights, for inputs of these widths; by default there are none.

        Raises:
            ValueError: the widths do not fit the layer.
        """

    # Whole sequences at once

    def call(
        self,
        query: Tensor,
        value: Tensor,
        key: Tensor | None = None,
        query_mask: Tensor | None = None,
        value_mask: Tensor | None = None,
        key_mask: Tensor | None = None,
        attention_mask: Tensor | None = None,
        return_attention_scores: bool = False,
        training: bool | None = None,
        use_causal_mask: bool = False,
    ) -> Any:
        """Attends from `query` to `value`.

        Args:
            query: `[B, T, width]`.
            value: `[B, S, value width]`.
            key: `[B, S, key width]`; `None` to use `value`. Variants without keys
                refuse any other key.
            query_mask: bool `[B, T]`, True at real query positions.
            value_mask: bool `[B, S]`, True at real key positions.
            key_mask: bool `[B, S]`, combined with `value_mask`.
            attention_mask: bool `[B, T, S]` or `[T, S]`, which keys each query attends
                to.
            return_attention_scores: whether to return the weights as well. This
                never changes the output.
            training: whether dropout is applied.
            use_causal_mask: whether query `i` attends only to keys `j <= i`.

        Returns:
            `[B, T, width]`; with scores, also float32 weights `[B, H, T, S]`.

        Raises:
            ValueError: the variant cannot honour an argument.
            TypeError: `attend` did not return a context and weights.
        """
        check_inputs(self, query, value, key, attention_mask, use_causal_mask)
        check_scores_wanted(self, return_attention_scores)
        key_mask = combine_masks(value_mask, key_mask)
        masks = Masks(query_mask, key_mask, attention_mask, use_causal_mask)
        given = Call(query, value, key, masks, return_attention_scores, training)
        context, scores = check_returned(self, "attend", self.attend(given), given)
        output = self.project_output(zero_masked(context, query_mask), training)
        if not return_attention_scores:
            return output
        return output, zero_masked(scores, query_mask, axis=2)

    def attend(self, call: Call) -> tuple[Tensor, Tensor | None]:
        """Computes the variant's equation over whole sequences.

        Returns:
            The context `[B, T, ...]`, in the form that `project_output` takes, and the
            float32 weights `[B, H, T, S]`, which may be `None` if they are not needed.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define `attend`.")

    def project_output(self, context: Tensor, training: bool | None = False) -> Tensor:
        """The output `[..., width]` for a context; by default the context itself."""
        return context

    # One position at a time

    def round_as(self, dtype: str) -> None:
        """Allows the precision of a narrower dtype wherever that is faster."""

    def prepare(self, value: Tensor, value_mask: Tensor | None = None) -> State:
        """Prepares a source for cross-attention, once per sentence.

        Args:
            value: `[B, S, value width]`.
            value_mask: bool `[B, S]`.

        Returns:
            The memory: a dict of tensors `[B, ...]`, never tiled over beams.
        """
        raise NotImplementedError(f"{type(self).__name__} cannot do cross-attention.")

    def initial_state(
        self, batch: Size, beams: int, max_length: int, memory: Memory = None
    ) -> State:
        """The state before the first position: a dict of `[B, K, ...]` tensors.

        All hypotheses of a sentence share the tensors under the key `SHARED`. A
        search reorders the other tensors and leaves these unchanged.

        Args:
            batch: number of sentences; an integer or a scalar tensor.
            beams: number of hypotheses per sentence.
            max_length: maximum number of positions that will be decoded.
            memory: returned by `prepare`, in cross-attention; else `None`.

        Raises:
            ValueError: the variant can only do cross-attention, and there is no memory.
        """
        check_memory(self, memory)
        return {}

    def step(
        self,
        query: Tensor,
        position: Size,
        state: State,
        memory: Memory = None,
        return_attention_scores: bool = False,
    ) -> Any:
        """Computes one position of `call` for every hypothesis.

        Args:
            query: `[B, K, width]`, the inputs at this position.
            position: int32 scalar, 0-based and below `max_length`. A tensor is not
                checked: a position beyond `max_length` is not stored in the state.
            state: returned by the previous step or `initial_state`.
            memory: returned by `prepare`, in cross-attention.
            return_attention_scores: whether to return the weights as well.

        Returns:
            The output `[B, K, width]` and the new state; with scores, also
            float32 weights: `[B, K, H, S]` over the source in cross-attention,
            `[B, K, H, slots]` over the positions stored in the state otherwise.

        Raises:
            ValueError: an argument cannot be honoured, or `position` is a Python
                integer for which the state has no room.
            TypeError: `attend_step` did not return a context, weights and a state.
        """
        check_scores_wanted(self, return_attention_scores)
        check_memory(self, memory)
        given = Step(query, position, state, memory, return_attention_scores)
        found = check_returned(self, "attend_step", self.attend_step(given), given)
        context, scores, state = found
        output = self.project_output(context)
        if output.shape[1] != query.shape[1]:  # one context for all beams
            output = ops.broadcast_to(output, (*ops.shape(query)[:2], output.shape[-1]))
        if not return_attention_scores:
            return output, state
        return output, state, scores

    def attend_step(self, step: Step) -> tuple[Tensor, Tensor | None, State]:
        """Computes the variant's equation at one position.

        Returns:
            The context `[B, K, ...]` (`[B, 1, ...]` if it is the same for all beams),
            the float32 weights as `step` returns them, which may be `None` if they are
            not needed, and the new state.
        """
        raise NotImplementedError(
            f"{type(self).__name__} does not define `attend_step`."
        )

    def alignment(self, scores: Tensor) -> Tensor:
        """The weight of each source position, averaged over the heads.

        Args:
            scores: `[B, K, H, S]`, as `step` returns them in cross-attention; `K` may
                also be the positions of a target.

        Returns:
            Float32 `[B, K, S]`.
        """
        return ops.mean(scores, axis=2)

    # Keras

    def compute_output_shape(
        self,
        query_shape: Shape,
        value_shape: Shape | None = None,
        key_shape: Shape | None = None,
    ) -> Shape:
        return query_shape

    def compute_scores_shape(self, query_shape: Shape, value_shape: Shape) -> Shape:
        """The shape of the weights that `call` returns."""
        return (query_shape[0], self.num_heads, query_shape[1], value_shape[1])

    def compute_output_spec(
        self,
        query: Tensor,
        value: Tensor,
        key: Tensor | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        # Keras passes masks by name, even if they are passed by position as well.
        _, _, _, *names = inspect.signature(self.call).parameters
        call = kwargs | dict(zip(names, args, strict=False))
        wanted = call.get("return_attention_scores", False)
        mask, causal = call.get("attention_mask"), call.get("use_causal_mask", False)
        check_inputs(self, query, value, key, mask, causal)
        check_scores_wanted(self, wanted)
        output = keras.KerasTensor(query.shape, dtype=self.compute_dtype)
        if not wanted:
            return output
        shape = self.compute_scores_shape(query.shape, value.shape)
        return output, keras.KerasTensor(shape, dtype="float32")
