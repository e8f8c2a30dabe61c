"""The recurrent encoder-decoder, with and without attention."""

from typing import Any

import keras
from keras import ops

from keras_attnvariants.attention.checks import check_positive
from keras_attnvariants.attention.registry import PACKAGE
from keras_attnvariants.backend import Dropout
from keras_attnvariants.models.base import TranslationModel
from keras_attnvariants.models.base import without_padding
from keras_attnvariants.models.checks import check_length
from keras_attnvariants.models.embeddings import TokenEmbeddings
from keras_attnvariants.models.lstm import LSTMDecoder
from keras_attnvariants.models.lstm import LSTMEncoder


@keras.saving.register_keras_serializable(package=PACKAGE)
class Seq2SeqLSTM(TranslationModel):
    """An LSTM encoder and an LSTM decoder (Chen, Ling and Rivera 2019).

    The decoder starts from the encoder's last state. With attention it also reads,
    at every position, the encoder's hidden states, weighted by the softmax of their
    dot products with its own previous state; see `LSTMDecoder`.

    The model is a *step model*: `encode`, `initial_state` and `step` are all
    that decoding, scoring and serving know of it.

    Args:
        vocabulary_size: number of tokens.
        embedding_dim: width of source and target embeddings.
        hidden_dim: width of the decoder's state and of the encoder's hidden states.
        bidirectional: whether the encoder runs in both directions, each of which
            then has half of `hidden_dim`.
        attention: whether the decoder attends to the encoder.
        dropout: rate on the embeddings and on the decoder's output.
        mask_padding: whether padding is left out. If not, the encoder runs over it
            and attention falls on it, as in the original: translations then depend on
            how much padding there is.
        source_vocabulary_size: number of source tokens; `None` if source and target
            share one vocabulary.
        max_length: longest source or target, in tokens, that is accepted.
        pad_id, bos_id, eos_id: ids of the special tokens.

    Raises:
        ValueError: an argument is out of range.

    Example:

    >>> import numpy as np
    >>> model = Seq2SeqLSTM(vocabulary_size=100, embedding_dim=8, hidden_dim=16)
    >>> ids = np.array([[5, 6, 7, 0]])
    >>> model({"source_ids": ids, "target_ids": ids}).shape
    TensorShape([1, 4, 100])
    """

    def __init__(
        self,
        vocabulary_size: int,
        embedding_dim: int = 100,
        hidden_dim: int = 200,
        bidirectional: bool = True,
        attention: bool = True,
        dropout: float = 0.0,
        mask_padding: bool = True,
        source_vocabulary_size: int | None = None,
        max_length: int = 512,
        pad_id: int = 0,
        bos_id: int = 2,
        eos_id: int = 3,
        **kwargs: Any,
    ):
        super().__init__(locals(), **kwargs)
        self.embedding_dim = check_positive("embedding_dim", embedding_dim)
        self.hidden_dim = check_positive("hidden_dim", hidden_dim)
        self.mask_padding = mask_padding
        if bidirectional and hidden_dim % 2:
            raise ValueError(
                "`hidden_dim` must be even: the two directions of the encoder have "
                f"half of it each. Received: {hidden_dim}"
            )
        self.embeddings = TokenEmbeddings(
            vocabulary_size,
            self.source_vocabulary_size,
            hidden_dim,
            embedding_dim,
            dropout=dropout,
            dtype=self.dtype_policy,
            name="embeddings",
        )
        self.encoder = LSTMEncoder(
            hidden_dim // 2 if bidirectional else hidden_dim,
            bidirectional,
            dtype=self.dtype_policy,
            name="encoder",
        )
        self.decoder = LSTMDecoder(
            hidden_dim, attention, dtype=self.dtype_policy, name="decoder"
        )
        self.dropout = Dropout(dropout, dtype=self.dtype_policy)
        self.build()

    def build(self, input_shape=None):
        shape = (None, None, self.embedding_dim)
        self.embeddings.build()
        self.encoder.build(shape)
        self.decoder.build(shape, (None, None, self.hidden_dim))
        self.built = True

    def call(self, inputs, training=None):
        """Logits for every target position, given all target tokens before it.

        Args:
            inputs: dict of int `source_ids` `[B, S]` and `target_ids` `[B, T]`,
                padded on the right with `pad_id`; the target starts with BOS.
            training: whether dropout is applied.

        Returns:
            `[B, T, vocabulary_size]`.
        """
        hidden, _ = self.decode(inputs, training)
        return self.embeddings.logits(self.dropout(hidden, training=training))

    def attention_scores(self, inputs, training=False) -> dict[str, dict[str, Any]]:
        """The attention weights in a full pass, in the form of `Transformer`'s.

        Args:
            inputs: as for `call`.
            training: whether dropout is applied.

        Returns:
            `["decoder"]["cross"]`, float32 `[B, 1, T, S]`; no such entry without
            attention. Rows of padding are 0.
        """
        hidden, context = self.decode(inputs, training)
        if not self.decoder.attention:
            return {"decoder": {}}
        weights = self.decoder.attention_weights(hidden, context)
        real = ops.not_equal(inputs["target_ids"], self.pad_id)
        return {"decoder": {"cross": without_padding(weights[:, None], real)}}

    def decode(self, inputs, training=None):
        """Hidden states of the decoder `[B, T, hidden_dim]`, and the context."""
        context = self.encode(inputs["source_ids"], training)
        check_length("target_ids", inputs["target_ids"].shape[1], self.max_length)
        x = self.embeddings.embed_target(inputs["target_ids"], training=training)
        return self.decoder(x, context), context

    # The step-model protocol

    def encode(self, source_ids, training=False) -> dict[str, Any]:
        """What decoding needs of the source: nested tensors `[B, ...]`.

        Args:
            source_ids: int `[B, S]`, padded on the right with `pad_id`.
            training: whether dropout is applied.
        """
        check_length("source_ids", source_ids.shape[1], self.max_length)
        mask = ops.not_equal(source_ids, self.pad_id)
        if not self.mask_padding:
            mask = ops.ones_like(mask)
        x = self.embeddings.embed_source(source_ids, training=training)
        encoded, state = self.encoder(x, mask)
        return self.decoder.prepare(encoded, state, mask)

    def initial_state(self, context, beams: int, max_length: int) -> dict[str, Any]:
        """The state before the first position: nested tensors `[B, K, ...]`."""
        check_length("max_length", max_length, self.max_length)
        return self.decoder.initial_state(context, beams)

    def step(self, tokens, position, state, context, return_attention_scores=False):
        """Logits for the token after `tokens`.

        Args:
            tokens: int `[B, K]`, the tokens at this position (BOS at first).
            position: int32 scalar, 0-based.
            state: what the previous step, or `initial_state`, returned.
            context: what `encode` returned.
            return_attention_scores: whether to return an alignment as well.

        Returns:
            Logits `[B, K, vocabulary_size]` and the new state; with scores also
            the attention weights, float32 `[B, K, S]`, 0 without attention.
        """
        x = self.embeddings.embed_step(tokens, position)
        x, state, weights = self.decoder.step(x, state, context)
        logits = self.embeddings.logits(x)
        if not return_attention_scores:
            return logits, state
        if weights is None:
            shape = (*ops.shape(tokens), ops.shape(context["mask"])[1])
            weights = ops.zeros(shape, "float32")
        return logits, state, weights
