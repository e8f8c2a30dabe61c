"""Recurrent encoder and decoder: only the recurrence itself is inside the loop.

Axis letters: `B` batch, `K` beams, `T` target, `S` source length, `D` directions.
A state is a dict of `hidden`, in the compute dtype, and `cell`, in float32 because it
is a sum over time. The last axis of matrices and biases holds the four gates in this
order: input, forget, output, candidate.
"""

from typing import Any

import keras
from keras import ops

from keras_attnvariants.attention.multi_head import merge_heads
from keras_attnvariants.backend import Dense
from keras_attnvariants.backend import masked_softmax
from keras_attnvariants.backend import scan
from keras_attnvariants.utils.checks import check_integer
from keras_attnvariants.utils.typing import DType
from keras_attnvariants.utils.typing import NestedTensors
from keras_attnvariants.utils.typing import Shape
from keras_attnvariants.utils.typing import State
from keras_attnvariants.utils.typing import Tensor


class Recurrent(keras.layers.Layer):
    """The common part of encoder and decoder: the cell and its projections.

    An LSTM (Hochreiter and Schmidhuber 1997); the bias of its forget gate starts at 1:

        i, f, o = sigmoid(x W + h U + b)    g = tanh(x W + h U + b)
        c' = f c + i g                      h' = o tanh(c')

    Args:
        units: width of hidden and cell state.
        **kwargs: those of `keras.layers.Layer`.
    """

    def __init__(self, units: int, **kwargs: Any) -> None:
        # Otherwise Keras would cast a given cell state to the compute dtype.
        super().__init__(autocast=False, **kwargs)
        self.units = check_integer("units", units)

    def projection(self, name: str, input_width: int, use_bias: bool = True) -> Dense:
        """A built projection to all four gates: to `4 * units`."""
        dense = Dense(
            4 * self.units,
            use_bias=use_bias,
            bias_initializer=forget_bias,
            dtype=self.dtype_policy,
            name=name,
        )
        dense.build((None, None, input_width))
        return dense

    def recurrent_weight(self, leading: tuple[int, ...] = ()) -> keras.Variable:
        """The matrix `U` from the hidden state to the gates.

        Its shape is `[*leading, units, 4 * units]`.
        """
        return self.add_weight(
            shape=(*leading, self.units, 4 * self.units),
            initializer=stacked_orthogonal,
            name="recurrent_kernel",
        )

    def advance(self, gates: Tensor, state: State) -> State:
        """The next state, from the sum of all inputs of the gates.

        Args:
            gates: `[..., 4 * units]`, before the nonlinearities.
            state: `[..., units]`.
        """
        parts = ops.split(ops.cast(gates, "float32"), 4, -1)
        input_gate, forget_gate, output_gate = map(ops.sigmoid, parts[:3])
        candidate = ops.tanh(parts[3])
        cell = forget_gate * state["cell"] + input_gate * candidate
        hidden = ops.cast(output_gate * ops.tanh(cell), self.compute_dtype)
        return {"hidden": hidden, "cell": cell}


class LSTMEncoder(Recurrent):
    """An LSTM over a source, in one direction or in both at once.

    One loop runs both directions. The state does not change at padding, so each
    direction depends on real tokens only, wherever the padding is.

    Args:
        units: width of the state in each direction.
        bidirectional: whether a second LSTM runs from the end to the start.
        **kwargs: those of `keras.layers.Layer`.
    """

    def __init__(self, units: int, bidirectional: bool = False, **kwargs: Any) -> None:
        super().__init__(units, **kwargs)
        self.directions = ("forward", "backward")[: 1 + bidirectional]

    def build(self, input_shape: Shape) -> None:
        self.input_denses = [
            self.projection(name, input_shape[-1]) for name in self.directions
        ]
        self.recurrent_kernel = self.recurrent_weight((len(self.directions),))

    def call(self, x: Tensor, mask: Tensor) -> tuple[Tensor, State]:
        """The hidden states of all tokens, and the last state of each sentence.

        Args:
            x: `[B, S, width]`.
            mask: bool `[B, S]`, false for padding.

        Returns:
            Hidden states `[B, S, D * units]`, and the last state, `[B, D * units]`.
        """
        x = ops.swapaxes(x, 0, 1)
        # [S, D, B, 4 * units]
        gates = stack_directions([dense(x) for dense in self.input_denses])
        mask = ops.swapaxes(mask, 0, 1)[..., None]
        mask = stack_directions([mask] * len(self.directions))  # [S, D, B, 1]
        kernel = ops.cast(self.recurrent_kernel, self.compute_dtype)

        def step(state: State, inputs: tuple[Tensor, Tensor]) -> tuple[State, Tensor]:
            gates, is_real = inputs
            new = self.advance(gates + ops.matmul(state["hidden"], kernel), state)
            new = {k: ops.where(is_real, new[k], state[k]) for k in new}
            return new, new["hidden"]

        shape = (len(self.directions), ops.shape(x)[1], self.units)
        state = {
            "hidden": ops.zeros(shape, self.compute_dtype),
            "cell": ops.zeros(shape, "float32"),
        }
        state, hidden = scan(step, state, (gates, mask))
        hidden = stack_directions([hidden[:, d] for d in range(len(self.directions))])
        hidden = merge_heads(ops.transpose(hidden, (2, 0, 1, 3)))
        state = {k: merge_heads(ops.swapaxes(state[k], 0, 1)) for k in state}
        return hidden, state


class LSTMDecoder(Recurrent):
    """An LSTM over a target that starts from the encoder's last state.

    With attention (Chen, Ling and Rivera 2019), position `t` attends to the source
    with its previous state as query, without any parameter and without scaling:

        alpha_t = softmax(s_{t-1} H^T)    ctx_t = alpha_t H
        s_t, c_t = LSTM([x_t ; ctx_t], (s_{t-1}, c_{t-1}))

    The context itself is not computed. It would add `alpha_t (H W_ctx)` to the gates,
    and `H W_ctx` is computed once per sentence.

    Args:
        units: width of the state and of the encoder's hidden states.
        attention: whether it attends to the source at every position.
        **kwargs: those of `keras.layers.Layer`.
    """

    def __init__(self, units: int, attention: bool, **kwargs: Any) -> None:
        super().__init__(units, **kwargs)
        self.attention = attention

    def build(self, input_shape: Shape) -> None:
        self.input_dense = self.projection("input", input_shape[-1])
        self.recurrent_kernel = self.recurrent_weight()
        if self.attention:
            self.context_dense = self.projection("context", self.units, use_bias=False)

    def prepare(self, encoded: Tensor, state: State, mask: Tensor) -> State:
        """The memory of a source, computed once per sentence.

        Args:
            encoded: hidden states of the encoder, `[B, S, units]`.
            state: its last state, `[B, units]`.
            mask: bool `[B, S]`, positions that can be attended to.

        Returns:
            The memory: tensors `[B, ...]`.
        """
        memory = {"state": state, "mask": mask}
        if self.attention:
            memory["encoded"] = ops.swapaxes(encoded, 1, 2)  # [B, units, S]
            memory["gates"] = self.context_dense(encoded)  # [B, S, 4 * units]
        return memory

    def initial_state(self, memory: NestedTensors, beams: int) -> State:
        """The state before the first position, `[B, K, units]`."""
        return {
            key: ops.repeat(value[:, None], beams, axis=1)
            for key, value in memory["state"].items()
        }

    def call(self, x: Tensor, memory: NestedTensors) -> Tensor:
        """Hidden states `[B, T, units]` from inputs `[B, T, width]`."""
        # [T, B, 1, 4 * units]
        gates = self.input_dense(ops.swapaxes(x, 0, 1))[:, :, None]
        kernel = ops.cast(self.recurrent_kernel, self.compute_dtype)

        def step(state: State, gates: Tensor) -> tuple[State, Tensor]:
            state, _ = self.attend_and_advance(gates, kernel, state, memory)
            return state, state["hidden"]

        _, hidden = scan(step, self.initial_state(memory, 1), gates)
        return ops.swapaxes(hidden[:, :, 0], 0, 1)

    def attention_weights(self, hidden: Tensor, memory: NestedTensors) -> Tensor:
        """Float32 attention weights `[B, T, S]`, from the output of `call`."""
        first = memory["state"]["hidden"][:, None]
        previous = ops.concatenate([first, hidden[:, :-1]], axis=1)
        return self.attend(previous, memory)

    def step(
        self, x: Tensor, state: State, memory: NestedTensors
    ) -> tuple[Tensor, State, Tensor | None]:
        """One position of `call`, for every hypothesis.

        Args:
            x: `[B, K, width]`.
            state: returned by the previous step or `initial_state`.
            memory: returned by `prepare`.

        Returns:
            The hidden state `[B, K, units]`, the new state, and float32 attention
            weights `[B, K, S]`, or `None` without attention.
        """
        kernel = ops.cast(self.recurrent_kernel, self.compute_dtype)
        state, weights = self.attend_and_advance(
            self.input_dense(x), kernel, state, memory
        )
        return state["hidden"], state, weights

    def attend_and_advance(
        self, gates: Tensor, kernel: Tensor, state: State, memory: NestedTensors
    ) -> tuple[State, Tensor | None]:
        """The next state, and float32 attention weights `[B, K, S]` or `None`.

        Args:
            gates: the contribution of the input to the gates, `[B, K, 4 * units]`.
            kernel: the recurrent matrix, in the compute dtype.
            state: `[B, K, units]`.
            memory: returned by `prepare`.
        """
        hidden, weights = state["hidden"], None
        # One product of two matrices: other forms transpose the kernel at every step.
        rows = ops.matmul(ops.reshape(hidden, (-1, self.units)), kernel)
        gates = gates + ops.reshape(rows, ops.shape(gates))
        if self.attention:
            weights = self.attend(hidden, memory)
            gates += ops.matmul(ops.cast(weights, gates.dtype), memory["gates"])
        return self.advance(gates, state), weights

    def attend(self, hidden: Tensor, memory: NestedTensors) -> Tensor:
        """Float32 attention weights `[B, K, S]` of previous states `[B, K, units]`."""
        energies = ops.matmul(hidden, memory["encoded"])
        return masked_softmax(energies, memory["mask"][:, None])


def stack_directions(directions: list[Tensor]) -> Tensor:
    """Stacks one tensor `[S, B, ...]` per direction, the second one reversed in time.

    Returns:
        `[S, D, B, ...]`.
    """
    first, *second = directions
    return ops.stack([first, *(ops.flip(x, axis=0) for x in second)], axis=1)


def forget_bias(shape: tuple[int, ...], dtype: DType = None) -> Tensor:
    """Biases of the four gates: 1 for the forget gate, 0 for the others."""
    return ops.repeat(ops.convert_to_tensor([0, 1, 0, 0], dtype), shape[0] // 4)


def stacked_orthogonal(shape: tuple[int, ...], dtype: DType = None) -> Tensor:
    """Orthogonal rows in each matrix `[..., units, 4 * units]`."""
    if len(shape) == 2:
        # Not every backend can find an orthogonal matrix in half precision.
        orthogonal = keras.initializers.Orthogonal()(shape, "float32")
        return ops.cast(orthogonal, dtype)
    return ops.stack([stacked_orthogonal(shape[1:], dtype) for _ in range(shape[0])])
