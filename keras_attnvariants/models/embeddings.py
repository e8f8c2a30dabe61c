"""Embeddings of token ids, and the projection to logits."""

from typing import Any

import keras
from keras import ops

from keras_attnvariants.attention.calls import zero_masked
from keras_attnvariants.backend import Dense
from keras_attnvariants.backend import Dropout
from keras_attnvariants.backend import Embedding
from keras_attnvariants.backend import ReversibleEmbedding
from keras_attnvariants.backend import reshape
from keras_attnvariants.backend import sizes
from keras_attnvariants.utils.typing import Shape
from keras_attnvariants.utils.typing import Size
from keras_attnvariants.utils.typing import Tensor

TYING = ("all", "decoder", "none")


def with_token(ids: Tensor, token: int, pad_id: int) -> Tensor:
    """Appends a token to each row of ids `[B, S]`, which are padded on the right.

    Returns:
        `[B, S + 1]`.
    """
    ids = ops.pad(ids, [(0, 0), (0, 1)], constant_values=pad_id)
    is_token = ops.not_equal(ids, pad_id)
    lengths = ops.sum(ops.cast(is_token, "int32"), axis=1, keepdims=True)
    places = ops.arange(ops.shape(ids)[1], dtype="int32")
    return ops.where(ops.equal(places, lengths), ops.cast(token, ids.dtype), ids)


def without_token(weights: Tensor, mask: Tensor) -> Tensor:
    """Attention weights without the weights of the token that `with_token` added.

    Args:
        weights: `[B, ..., S + 1]`.
        mask: bool `[B, S + 1]`, which tokens are not padding.

    Returns:
        `[B, ..., S]`, 0 for padding.

    Raises:
        ValueError: the weights are those of phrases, not of tokens.
    """
    if weights.shape[-1] != mask.shape[1]:
        raise ValueError(
            "With `source_eos`, a model returns attention weights of tokens only. "
            f"Received: those of {weights.shape[-1]} phrases in {mask.shape[1]} tokens"
        )
    is_followed = mask[:, 1:]  # [B, S]: whether another token follows
    return zero_masked(weights[..., :-1], is_followed, axis=len(weights.shape) - 1)


class TokenEmbeddings(keras.layers.Layer):
    """Source and target embeddings, positions, and the output projection.

    Args:
        vocabulary_size: number of target tokens.
        source_vocabulary_size: number of source tokens.
        hidden_dim: width of the output projection's inputs.
        embedding_dim: width of the embeddings, before positions.
        positions: layer that adds or concatenates positions, or `None`.
        scale: whether embeddings are multiplied by `sqrt(hidden_dim)`.
        tie_embeddings: `"all"`: source, target and output share one matrix;
            `"decoder"`: target and output do; `"none"`: three matrices.
        softmax_bias: whether the output projection has a bias.
        dropout: rate, after the positions.
        source: layer that replaces the source embeddings, see `Transformer`; `None` for
            a table.

    Raises:
        ValueError: matrices to be tied differ in shape.
    """

    def __init__(
        self,
        vocabulary_size: int,
        source_vocabulary_size: int,
        hidden_dim: int,
        embedding_dim: int,
        positions: keras.layers.Layer | None = None,
        scale: bool = False,
        tie_embeddings: str = "none",
        softmax_bias: bool = True,
        dropout: float = 0.0,
        source: keras.layers.Layer | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.hidden_dim = hidden_dim
        self.positions = positions
        self.scale = hidden_dim**0.5 if scale else 1.0
        self.tied = tie_embeddings != "none"
        if self.tied and embedding_dim != hidden_dim:
            raise ValueError(
                "Embeddings that leave room for concatenated positions are narrower "
                "than the output and cannot be tied to it: use tie_embeddings='none'. "
                f"Received: tie_embeddings={tie_embeddings!r}"
            )
        shares = tie_embeddings == "all" and source is None
        if shares and source_vocabulary_size != vocabulary_size:
            raise ValueError(
                "Source and target have vocabularies of different sizes and cannot "
                "share their embeddings: use tie_embeddings='decoder' or 'none'. "
                f"Received: tie_embeddings={tie_embeddings!r}"
            )
        if source is not None and source.hidden_dim != embedding_dim:
            raise ValueError(
                f"`hidden_dim` of the source embedding must be {embedding_dim}, the "
                f"width of the target's. Received: {source.hidden_dim}"
            )
        self.target = self.table(vocabulary_size, embedding_dim, "target", self.tied)
        self.source = source or self.target
        if not shares and source is None:
            self.source = self.table(
                source_vocabulary_size, embedding_dim, "source", False
            )
        self.vocabulary_size = vocabulary_size
        self.softmax_bias = softmax_bias
        if not self.tied:
            self.output_dense = Dense(
                vocabulary_size,
                use_bias=softmax_bias,
                dtype=self.dtype_policy,
                name="output",
            )
        self.dropout = Dropout(dropout, dtype=self.dtype_policy)

    def table(
        self, size: int, width: int, name: str, reversible: bool
    ) -> keras.layers.Embedding:
        """An embedding layer, one that also projects back if `reversible`."""
        options = {
            # One initializer per table: a shared one would give all the same values.
            "embeddings_initializer": keras.initializers.RandomNormal(
                stddev=self.hidden_dim**-0.5
            ),
            "dtype": self.dtype_policy,
            "name": name,
        }
        if not reversible:
            return Embedding(size, width, **options)
        # Without its `reverse_dtype`, Keras projects in the dtype of the weights.
        return ReversibleEmbedding(
            size, width, reverse_dtype=self.compute_dtype, **options
        )

    def build(self, input_shape: Shape | None = None) -> None:
        self.target.build((None, None))
        if self.source is not self.target:
            self.source.build((None, None))
        if self.positions is not None:
            self.positions.build((None, None, self.target.output_dim))
        self.bias = None
        if not self.tied:
            self.output_dense.build((None, None, self.hidden_dim))
        elif self.softmax_bias:
            self.bias = self.add_weight(
                shape=(self.vocabulary_size,), initializer="zeros", name="bias"
            )

    def embed_source(self, ids: Tensor, training: bool | None = None) -> Tensor:
        """Ids `[B, S]` to `[B, S, width]`, positions included."""
        if not hasattr(self.source, "stride"):
            return self.embed(self.source(ids), 0, training)
        return self.embed(self.source(ids, training=training), 0, training)

    def embed_target(
        self, ids: Tensor, start: Size = 0, training: bool | None = None
    ) -> Tensor:
        """Ids `[B, T]` at positions from `start` on to `[B, T, width]`."""
        return self.embed(self.target(ids), start, training)

    def embed_step(self, ids: Tensor, position: Size) -> Tensor:
        """Ids `[B, K]`, all at one position, to `[B, K, width]`."""
        x = self.embed_target(ops.reshape(ids, (-1, 1)), position)
        return reshape(x, (*sizes(ids), x.shape[-1]))

    def embed(self, x: Tensor, start: Size, training: bool | None) -> Tensor:
        """Embeddings `[B, T, width]`, scaled, with positions from `start` on."""
        x = x * self.scale
        if self.positions is not None:
            x = self.positions(x, start=start)
        return self.dropout(x, training=training)

    def columns(self, ids: Tensor) -> dict[str, Tensor]:
        """The columns of the output kernel and bias for tokens `[B, W]`.

        Only the copy in an `inference_copy` can compute them.

        Returns:
            `kernel`, `[B, hidden_dim, W]`, and, if there is one, `bias`, `[B, 1, W]`.

        Raises:
            ValueError: the matrix is quantized.
        """
        product = self.target.product if self.tied else self.output_dense
        if not keras.backend.is_float_dtype(product.kernel.dtype):
            raise ValueError(
                "The logits of some tokens need a matrix of floats. "
                f"Received: {product.kernel.dtype}"
            )
        if self.tied:
            kernel = ops.transpose(ops.take(self.target.rows, ids, axis=0), (0, 2, 1))
        else:
            kernel = ops.transpose(ops.take(product.kernel, ids, axis=1), (1, 0, 2))
        bias = self.bias if self.tied else product.bias
        if bias is None:
            return {"kernel": kernel}
        bias = ops.cast(ops.take(bias, ids, axis=0), self.compute_dtype)
        return {"kernel": kernel, "bias": bias[:, None]}

    def logits(self, x: Tensor) -> Tensor:
        """`[..., hidden_dim]` to `[..., vocabulary_size]`."""
        if not self.tied:
            return self.output_dense(x)
        logits = self.target(x, reverse=True)
        return logits if self.bias is None else logits + ops.cast(self.bias, x.dtype)
