"""The layer of Sun and Iyyer's (2021) neural language model, also for encoders.

It concatenates the vectors of near tokens and averages of distant ones. Sun and Iyyer
use it in the first layer of a language model; `ConcatenatedNgram` extends it to
encoders.
"""

from typing import Any

import numpy as np
from keras import ops

from keras_attnvariants.attention.banded import convolve_bands
from keras_attnvariants.attention.calls import Widths
from keras_attnvariants.attention.multi_head import merge_heads
from keras_attnvariants.attention.neural_ngram import NgramLayer
from keras_attnvariants.attention.registry import register_attention
from keras_attnvariants.backend import Dropout
from keras_attnvariants.utils.checks import check_integer
from keras_attnvariants.utils.typing import Tensor


@register_attention(
    paper="Sun and Iyyer 2021",
    examples=(
        {"hidden_dim": 12, "n": 3, "far_windows": 2, "far_size": 2},
        {"hidden_dim": 12, "n": 2, "causal": True, "far_size": 3},
        {"hidden_dim": 12, "n": 4, "causal": True, "far_windows": 0},
    ),
)
class ConcatenatedNgram(NgramLayer):
    """Concatenated neighbours, the baseline of neural n-grams (Sun and Iyyer 2021).

    `z = drop(ReLU(concat(v) W_1 + b_1) W_2 + b_2) + sum(v) - x` at every position
    `t`. The vectors `v` are the inputs `t - n + 1` to `t`, and the means of the inputs
    in `far_windows` consecutive windows before them; unless `causal`, also the
    corresponding vectors on the right. The residual connection around the layer adds
    the input `x`, so the block passes on the sum of all vectors.

    The paper uses this layer once, with feed-forward layers above: pass
    `[kav.ConcatenatedNgram(…)] + [None] * (num_layers - 1)` to a model. The released
    code also adds the far means again in every layer above and can learn their weights.

    Args:
        hidden_dim: width of the hidden layer.
        n: reach of the unaveraged inputs to each side, in tokens, the position itself
            included.
        causal: whether the layer uses no later positions, as decoders need.
        far_windows: number of windows further away, on each side.
        far_size: length of these windows, in tokens. Positions outside the sequence
            count as zeros.
        dropout: dropout rate of the first term. There is no other dropout, neither
            here nor in the residual connection around the layer.
        seed: random seed of the dropout.
        use_bias: whether the projections have biases. By default they do, as in the
            paper.
        initializers, regularizers and constraints: as in `ProjectedAttention`.

    Raises:
        ValueError: a size is out of range. When called: as `NeuralNgram`.

    Example:

    >>> import numpy as np
    >>> layer = ConcatenatedNgram(hidden_dim=32, n=3, causal=True)
    >>> layer(np.ones((2, 7, 16), "float32"), np.ones((2, 7, 16), "float32")).shape
    TensorShape([2, 7, 16])
    """

    # The layer applies dropout itself: the residual connection around it must not.
    drops_output = True

    def __init__(
        self,
        hidden_dim: int,
        n: int = 5,
        causal: bool = False,
        far_windows: int = 1,
        far_size: int = 16,
        dropout: float = 0.0,
        use_bias: bool = True,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(n, causal, use_bias=use_bias, **kwargs)
        self.hidden_dim = check_integer("hidden_dim", hidden_dim)
        self.far_windows = check_integer("far_windows", far_windows, minimum=0)
        self.far_size = check_integer("far_size", far_size)
        self.before += self.far_windows * self.far_size
        self.dropout = dropout
        self.seed = seed
        self.dropout_layer = Dropout(dropout, seed=seed, dtype=self.dtype_policy)

    def spans(self) -> list[tuple[int, int]]:
        """First and last relative position of each vector, starting with `x` itself."""
        near = [(-distance, -distance) for distance in range(1, self.n)]
        starts = [self.n + k * self.far_size for k in range(self.far_windows)]
        left = near + [(1 - start - self.far_size, -start) for start in starts]
        right = [] if self.causal else [(-last, -first) for first, last in left]
        return [(0, 0), *left, *right]

    def kernel(self) -> np.ndarray:
        """The share of each neighbour in each vector: `[1 + sum(reach), V]`."""
        before, after = self.reach
        relative = np.arange(-before, after + 1)[:, None]
        first, last = np.array(self.spans()).T
        inside = (first <= relative) & (relative <= last)
        return inside / (last - first + 1)

    def make_layers(self, widths: Widths) -> None:
        super().make_layers(widths)
        width = widths.query
        if self.input_dim != width:
            raise ValueError(
                f"`value` must be as wide as `query`: ConcatenatedNgram adds up its "
                f"inputs. Received: widths {self.input_dim} and {width}"
            )
        self.hidden_dense = self.dense(
            "hidden", len(self.spans()) * width, self.hidden_dim
        )
        self.output_dense = self.dense_output(self.hidden_dim, width)

    def vectors(self, inputs: Tensor) -> Tensor:
        kernel = self.kernel()
        batch, length, width = ops.shape(inputs)
        shape = (batch, length, kernel.shape[1], width)
        copies = ops.broadcast_to(inputs[:, :, None], shape)
        return convolve_bands(copies, kernel, -self.before)

    def last_vectors(self, window: Tensor) -> Tensor:
        kernel = ops.cast(self.kernel(), window.dtype)
        return ops.einsum("wv,bkwd->bkvd", kernel, window)

    def contexts(self, vectors: Tensor, sentence: Tensor | None = None) -> Tensor:
        """`[B, L, hidden_dim + d]`: the hidden layer and the sum of the neighbours."""
        hidden = ops.relu(self.hidden_dense(merge_heads(vectors)))
        neighbours = ops.sum(vectors[:, :, 1:], axis=2)
        return ops.concatenate([hidden, neighbours], axis=-1)

    def project_output(self, context: Tensor, training: bool | None = False) -> Tensor:
        hidden, neighbours = ops.split(context, [self.hidden_dim], axis=-1)
        output = self.output_dense(hidden)
        return self.dropout_layer(output, training=training) + neighbours
