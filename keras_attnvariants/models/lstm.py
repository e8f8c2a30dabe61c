"""Recurrent encoder and decoder: only the recurrence itself is inside the loop.

Axis letters: `B` batch, `K` beams, `T` target, `S` source length, `D` directions.
A state is a dict of `hidden`, in the compute dtype, and `cell`, in float32: a sum over
time. Its four gates lie side by side: input, forget, output, candidate.
"""

from typing import Any

import keras
from keras import ops

from keras_attnvariants.attention.checks import check_positive
from keras_attnvariants.backend import Dense
from keras_attnvariants.backend import masked_softmax
from keras_attnvariants.backend import scan


class Recurrent(keras.layers.Layer):
    """What encoder and decoder share: the cell and its projections.

    Hochreiter and Schmidhuber 1997, with a forget gate whose bias starts at 1:

        i, f, o = sigmoid(x W + h U + b)    g = tanh(x W + h U + b)
        c' = f c + i g                      h' = o tanh(c')

    Args:
        units: width of hidden and cell state.
    """

    def __init__(self, units: int, **kwargs: Any):
        # Keras would cast the cell state of an argument to the compute dtype.
        super().__init__(autocast=False, **kwargs)
        self.units = check_positive("units", units)

    def projection(self, name: str, input_width: int, use_bias: bool = True):
        """A built projection to all four gates."""
        dense = Dense(
            4 * self.units,
            use_bias=use_bias,
            bias_initializer=forget_bias,
            dtype=self.dtype_policy,
            name=name,
        )
        dense.build((None, None, input_width))
        return dense

    def recurrent_weight(self, lead: tuple[int, ...] = ()):
        """The matrix `U` from hidden state to gates, with leading axes."""
        return self.add_weight(
            shape=(*lead, self.units, 4 * self.units),
            initializer=stacked_orthogonal,
            name="recurrent_kernel",
        )

    def zero_state(self, lead: tuple) -> dict[str, Any]:
        """The state of zeros, `[*lead, units]`."""
        shape = (*lead, self.units)
        return {
            "hidden": ops.zeros(shape, self.compute_dtype),
            "cell": ops.zeros(shape, "float32"),
        }

    def advance(self, gates, state) -> dict[str, Any]:
        """The next state from the sum of all that flows into the gates.

        Args:
            gates: `[..., 4 * units]`.
            state: `[..., units]`.
        """
        enter, keep, leave, candidate = ops.split(ops.cast(gates, "float32"), 4, -1)
        enter, keep, leave = map(ops.sigmoid, (enter, keep, leave))
        cell = keep * state["cell"] + enter * ops.tanh(candidate)
        hidden = ops.cast(leave * ops.tanh(cell), self.compute_dtype)
        return {"hidden": hidden, "cell": cell}


class LSTMEncoder(Recurrent):
    """An LSTM over a source, in one direction or in both at once.

    Both directions are one loop. Over padding the state stands still, so that each
    direction runs on real tokens only, wherever the padding is.

    Args:
        units: width of the state in each direction.
        bidirectional: whether a second LSTM runs from the end to the start.
    """

    def __init__(self, units: int, bidirectional: bool = False, **kwargs: Any):
        super().__init__(units, **kwargs)
        self.names = ("forward", "backward")[: 1 + bidirectional]

    def build(self, input_shape):
        self.input_denses = [
            self.projection(name, input_shape[-1]) for name in self.names
        ]
        self.recurrent_kernel = self.recurrent_weight((len(self.names),))

    def call(self, x, mask):
        """Annotates every token, and sums up the sentence.

        Args:
            x: `[B, S, width]`.
            mask: bool `[B, S]`, real tokens.

        Returns:
            Hidden states `[B, S, D * units]`, and the last state, `[B, D * units]`.
        """
        x = ops.swapaxes(x, 0, 1)
        gates = self.turn([dense(x) for dense in self.input_denses])  # [S, D, B, 4u]
        mask = ops.swapaxes(mask, 0, 1)[..., None]
        mask = self.turn([mask] * len(self.names))  # [S, D, B, 1]
        kernel = ops.cast(self.recurrent_kernel, self.compute_dtype)

        def step(state, inputs):
            gates, is_real = inputs
            new = self.advance(gates + ops.matmul(state["hidden"], kernel), state)
            new = {k: ops.where(is_real, new[k], state[k]) for k in new}
            return new, new["hidden"]

        state = self.zero_state((len(self.names), ops.shape(x)[1]))
        state, hidden = scan(step, state, (gates, mask))
        hidden = self.turn([hidden[:, d] for d in range(len(self.names))])
        hidden = merge_directions(ops.transpose(hidden, (2, 0, 1, 3)))
        state = {k: merge_directions(ops.swapaxes(state[k], 0, 1)) for k in state}
        return hidden, state

    def turn(self, directions):
        """Stacks `[S, B, ...]` of each direction; the second one turned around."""
        first, *second = directions
        return ops.stack([first, *(ops.flip(x, axis=0) for x in second)], axis=1)


class LSTMDecoder(Recurrent):
    """An LSTM over a target that starts from the encoder's last state.

    With attention (Chen, Ling and Rivera 2019), position `t` reads from the source
    by its previous state, without any parameter and without scaling:

        alpha_t = softmax(s_{t-1} H^T)    ctx_t = alpha_t H
        s_t, c_t = LSTM([x_t ; ctx_t], (s_{t-1}, c_{t-1}))

    The context itself is never formed: it acts on the gates as `alpha_t (H W_ctx)`,
    and `H W_ctx` is computed once.

    Args:
        units: width of the state.
        attention: whether it reads from the source at every position.
    """

    def __init__(self, units: int, attention: bool, **kwargs: Any):
        super().__init__(units, **kwargs)
        self.attention = attention

    def build(self, input_shape, source_shape):
        if source_shape[-1] != self.units:
            raise ValueError(
                "The decoder starts from the encoder's last state, and its state is "
                "compared with the encoder's by dot products: both must be equally "
                f"wide. Received: units={self.units}, source width={source_shape[-1]}"
            )
        self.input_dense = self.projection("input", input_shape[-1])
        self.recurrent_kernel = self.recurrent_weight()
        if self.attention:
            self.context_dense = self.projection("context", self.units, use_bias=False)

    def prepare(self, encoded, state, mask) -> dict[str, Any]:
        """What the decoder keeps of a source, once per sentence.

        Args:
            encoded: hidden states of the encoder, `[B, S, units]`.
            state: its last state, `[B, units]`.
            mask: bool `[B, S]`, positions that can be attended to.
        """
        memory = {"state": state, "mask": mask}
        if self.attention:
            memory["encoded"] = ops.swapaxes(encoded, 1, 2)  # [B, units, S]
            memory["gates"] = self.context_dense(encoded)  # [B, S, 4u]
        return memory

    def initial_state(self, memory, beams: int) -> dict[str, Any]:
        """The state before the first position, `[B, K, units]`."""
        return {
            key: ops.repeat(value[:, None], beams, axis=1)
            for key, value in memory["state"].items()
        }

    def call(self, x, memory):
        """Hidden states `[B, T, units]` from inputs `[B, T, width]`."""
        gates = self.input_dense(ops.swapaxes(x, 0, 1))[:, :, None]  # [T, B, 1, 4u]
        kernel = ops.cast(self.recurrent_kernel, self.compute_dtype)

        def step(state, gates):
            state, _ = self.attend_and_advance(gates, kernel, state, memory)
            return state, state["hidden"]

        _, hidden = scan(step, self.initial_state(memory, 1), gates)
        return ops.swapaxes(hidden[:, :, 0], 0, 1)

    def attention_weights(self, hidden, memory):
        """Float32 attention weights `[B, T, S]`, from what `call` returned."""
        first = memory["state"]["hidden"][:, None]
        before = ops.concatenate([first, hidden[:, :-1]], axis=1)
        return self.attend(before, memory)

    def step(self, x, state, memory):
        """One position `[B, K, width]`: hidden state, state, weights or `None`."""
        kernel = ops.cast(self.recurrent_kernel, self.compute_dtype)
        state, weights = self.attend_and_advance(
            self.input_dense(x), kernel, state, memory
        )
        return state["hidden"], state, weights

    def attend_and_advance(self, gates, kernel, state, memory):
        """The next state, and float32 attention weights `[B, K, S]` or `None`.

        Args:
            gates: what the input adds to the gates, `[B, K, 4 * units]`.
            kernel: the recurrent matrix, in the compute dtype.
            state: `[B, K, units]`.
            memory: what `prepare` returned.
        """
        hidden, weights = state["hidden"], None
        # As one product of matrices: other forms transpose the kernel at every step.
        rows = ops.matmul(ops.reshape(hidden, (-1, self.units)), kernel)
        gates = gates + ops.reshape(rows, ops.shape(gates))
        if self.attention:
            weights = self.attend(hidden, memory)
            gates += ops.matmul(ops.cast(weights, gates.dtype), memory["gates"])
        return self.advance(gates, state), weights

    def attend(self, hidden, memory):
        """Float32 attention weights `[B, K, S]` of previous states `[B, K, units]`."""
        energies = ops.matmul(hidden, memory["encoded"])
        return masked_softmax(energies, memory["mask"][:, None])


def merge_directions(x):
    """`[..., D, units]` to `[..., D * units]`."""
    shape = ops.shape(x)
    return ops.reshape(x, (*shape[:-2], shape[-2] * shape[-1]))


def forget_bias(shape, dtype=None):
    """Biases of the four gates: 1 for the forget gate, 0 for the others."""
    return ops.repeat(ops.convert_to_tensor([0, 1, 0, 0], dtype), shape[0] // 4)


def stacked_orthogonal(shape, dtype=None):
    """Orthogonal rows in each matrix `[..., units, 4 * units]`."""
    if len(shape) == 2:
        # Not every backend can find an orthogonal matrix in half precision.
        orthogonal = keras.initializers.Orthogonal()(shape, "float32")
        return ops.cast(orthogonal, dtype)
    return ops.stack([stacked_orthogonal(shape[1:], dtype) for _ in range(shape[0])])
