"""From token ids to vectors, and from vectors to logits."""

from typing import Any

import keras
from keras import ops

from keras_attnvariants.backend import Dropout

TYING = ("all", "decoder", "none")


class TokenEmbeddings(keras.layers.Layer):
    """Source and target embeddings, positions, and the output projection.

    Args:
        vocabulary_size: number of tokens, shared by source and target.
        hidden_dim: width of the model.
        positions: template layer that adds or concatenates positions.
        scale: whether embeddings are multiplied by `sqrt(hidden_dim)`.
        tie_embeddings: `"all"`: source, target and output share one matrix;
            `"decoder"`: target and output do; `"none"`: three matrices.
        softmax_bias: whether the output projection has a bias.
        dropout: rate, after the positions.
    """

    def __init__(
        self,
        vocabulary_size: int,
        hidden_dim: int,
        positions: keras.layers.Layer,
        scale: bool,
        tie_embeddings: str,
        softmax_bias: bool,
        dropout: float,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.hidden_dim = hidden_dim
        self.positions = positions
        self.scale = hidden_dim**0.5 if scale else 1.0
        self.tied = tie_embeddings != "none"
        width = hidden_dim - positions.concatenated_dim
        if self.tied and width != hidden_dim:
            raise ValueError(
                "Embeddings that leave room for concatenated positions are narrower "
                "than the output and cannot be tied to it: use tie_embeddings='none'. "
                f"Received: tie_embeddings={tie_embeddings!r}"
            )
        self.target = self.table(vocabulary_size, width, "target", self.tied)
        self.source = self.target
        if tie_embeddings != "all":
            self.source = self.table(vocabulary_size, width, "source", False)
        self.vocabulary_size = vocabulary_size
        self.softmax_bias = softmax_bias
        if not self.tied:
            self.output_dense = keras.layers.Dense(
                vocabulary_size,
                use_bias=softmax_bias,
                dtype=self.dtype_policy,
                name="output",
            )
        self.dropout = Dropout(dropout, dtype=self.dtype_policy)

    def table(self, size: int, width: int, name: str, reversible: bool):
        """An embedding layer, one that also projects back if `reversible`."""
        options = {
            # One initializer for each table, or all would start with equal values.
            "embeddings_initializer": keras.initializers.RandomNormal(
                stddev=self.hidden_dim**-0.5
            ),
            "dtype": self.dtype_policy,
            "name": name,
        }
        if not reversible:
            return keras.layers.Embedding(size, width, **options)
        # Without its `reverse_dtype`, Keras projects in the dtype of the weights.
        return keras.layers.ReversibleEmbedding(
            size, width, reverse_dtype=self.compute_dtype, **options
        )

    def build(self, input_shape=None):
        self.target.build((None, None))
        if self.source is not self.target:
            self.source.build((None, None))
        self.positions.build((None, None, self.target.output_dim))
        self.bias = None
        if not self.tied:
            self.output_dense.build((None, None, self.hidden_dim))
        elif self.softmax_bias:
            self.bias = self.add_weight(
                shape=(self.vocabulary_size,), initializer="zeros", name="bias"
            )

    def embed_source(self, ids, training=None):
        """Ids `[B, S]` to `[B, S, hidden_dim]`."""
        return self.embed(self.source, ids, 0, training)

    def embed_target(self, ids, start=0, training=None):
        """Ids `[B, T]` at positions from `start` on to `[B, T, hidden_dim]`."""
        return self.embed(self.target, ids, start, training)

    def embed_step(self, ids, position):
        """Ids `[B, K]`, all at one position, to `[B, K, hidden_dim]`."""
        batch, beams = ops.shape(ids)
        x = self.embed_target(ops.reshape(ids, (batch * beams, 1)), position)
        return ops.reshape(x, (batch, beams, self.hidden_dim))

    def embed(self, table, ids, start, training):
        x = self.positions(table(ids) * self.scale, start=start)
        return self.dropout(x, training=training)

    def logits(self, x):
        """`[..., hidden_dim]` to `[..., vocabulary_size]`."""
        if not self.tied:
            return self.output_dense(x)
        logits = self.target(x, reverse=True)
        return logits if self.bias is None else logits + ops.cast(self.bias, x.dtype)
