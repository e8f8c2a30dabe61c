"""The recurrent encoder-decoder, with and without attention."""

from typing import Any

import keras
from keras import ops

from keras_attnvariants.attention.calls import zero_masked
from keras_attnvariants.attention.registry import PACKAGE
from keras_attnvariants.backend import Dropout
from keras_attnvariants.models.base import EncoderDecoder
from keras_attnvariants.models.base import check_length
from keras_attnvariants.models.base import no_alignment
from keras_attnvariants.models.embeddings import TokenEmbeddings
from keras_attnvariants.models.lstm import LSTMDecoder
from keras_attnvariants.models.lstm import LSTMEncoder
from keras_attnvariants.utils.checks import check_integer
from keras_attnvariants.utils.checks import check_share
from keras_attnvariants.utils.typing import NestedTensors
from keras_attnvariants.utils.typing import Shape
from keras_attnvariants.utils.typing import State
from keras_attnvariants.utils.typing import Tensor


@keras.saving.register_keras_serializable(package=PACKAGE)
class Seq2SeqLSTM(EncoderDecoder):
    """An LSTM encoder and an LSTM decoder (Chen, Ling and Rivera 2019).

    The decoder starts from the encoder's last state. With attention, it also reads a
    weighted sum of the encoder's hidden states at every position. The weights are the
    softmax of their dot products with its own previous state; see `LSTMDecoder`.

    Args:
        vocabulary_size: number of tokens.
        embedding_dim: width of source and target embeddings.
        hidden_dim: width of the decoder's state and of the encoder's hidden states.
        bidirectional: whether the encoder runs in both directions, each with half of
            `hidden_dim`.
        attention: whether the decoder attends to the encoder.
        dropout: rate on the embeddings and on the decoder's output.
        mask_padding: whether padding is masked. If not, the encoder runs over it and
            the decoder attends to it, as in the original; translations then depend on
            the amount of padding.
        **kwargs: as in `EncoderDecoder`: `source_vocabulary_size` if it differs,
            `max_length` (512), `pad_id` (0), `bos_id` (2), `eos_id` (3), `dtype`, ….

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
        **kwargs: Any,
    ) -> None:
        super().__init__(vocabulary_size, **kwargs)
        self.embedding_dim = check_integer("embedding_dim", embedding_dim)
        self.hidden_dim = check_integer("hidden_dim", hidden_dim)
        self.bidirectional = bidirectional
        self.dropout_rate = check_share("dropout", dropout)
        self.mask_padding = mask_padding
        if bidirectional and hidden_dim % 2:
            raise ValueError(
                "`hidden_dim` must be even, because the two directions of the encoder "
                f"have half of it each. Received: {hidden_dim}"
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

    def build(self, input_shape: Shape | None = None) -> None:
        """Creates all weights; the constructor calls it."""
        shape = (None, None, self.embedding_dim)
        self.embeddings.build()
        self.encoder.build(shape)
        self.decoder.build(shape)
        self.built = True

    def call(self, inputs: dict[str, Tensor], training: bool | None = None) -> Tensor:
        """Logits `[B, T, V]`; arguments and errors as for `Transformer.call`."""
        hidden, context = self.run_decoder(inputs, training)
        guidance = self.guidance_of(inputs, training)
        if guidance is not None:
            weights = self.decoder.attention_weights(hidden, context)
            self.add_loss(guidance.loss(weights, inputs))
        return self.embeddings.logits(self.dropout(hidden, training=training))

    def guidable_layers(self) -> list[int]:
        return [1] if self.decoder.attention else []

    def attention_scores(
        self, inputs: dict[str, Tensor], training: bool | None = False
    ) -> dict[str, dict[str, Tensor]]:
        """The attention weights of a full pass, in the form of `Transformer`.

        Args:
            inputs: as for `call`.
            training: whether dropout is applied.

        Returns:
            `["decoder"]["cross"]`, float32 `[B, 1, T, S]`; no entry without attention.
            Rows of padding are 0.
        """
        hidden, context = self.run_decoder(inputs, training)
        if not self.decoder.attention:
            return {"decoder": {}}
        weights = self.decoder.attention_weights(hidden, context)
        real = ops.not_equal(inputs["target_ids"], self.pad_id)
        return {"decoder": {"cross": zero_masked(weights[:, None], real, axis=2)}}

    def run_decoder(
        self, inputs: dict[str, Tensor], training: bool | None = None
    ) -> tuple[Tensor, State]:
        """Hidden states of the decoder `[B, T, hidden_dim]`, and the context."""
        context = self.encode(inputs["source_ids"], training)
        check_length("target_ids", inputs["target_ids"].shape[1], self.max_length)
        x = self.embeddings.embed_target(inputs["target_ids"], training=training)
        return self.decoder(x, context), context

    # The step-model protocol

    def encode(self, source_ids: Tensor, training: bool | None = False) -> State:
        """The memory of the decoder: hidden states, last state and mask of a source."""
        check_length("source_ids", source_ids.shape[1], self.max_length)
        mask = ops.not_equal(source_ids, self.pad_id)
        if not self.mask_padding:
            mask = ops.ones_like(mask)
        x = self.embeddings.embed_source(source_ids, training=training)
        encoded, state = self.encoder(x, mask)
        return self.decoder.prepare(encoded, state, mask)

    def initial_state(
        self, context: NestedTensors, beams: int, max_length: int
    ) -> State:
        """The state of the decoder before the first position."""
        check_length("max_length", max_length, self.max_length)
        return self.decoder.initial_state(context, beams)

    def step(
        self,
        tokens: Tensor,
        position: Tensor,
        state: NestedTensors,
        context: NestedTensors,
        return_attention_scores: bool = False,
    ) -> tuple[Any, ...]:
        """Logits `[B, K, V]` after tokens `[B, K]`, the next state, and an alignment.

        The alignment, float32 `[B, K, S]`, is returned if scores are requested. It
        holds the attention weights, or 0 without attention.
        """
        x = self.embeddings.embed_step(tokens, position)
        x, state, weights = self.decoder.step(x, state, context)
        logits = self.embeddings.logits(x)
        if not return_attention_scores:
            return logits, state
        if weights is None:
            weights = no_alignment(tokens, context["mask"])
        return logits, state, weights

    # Keras

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "embedding_dim": self.embedding_dim,
            "hidden_dim": self.hidden_dim,
            "bidirectional": self.bidirectional,
            "attention": self.decoder.attention,
            "dropout": self.dropout_rate,
            "mask_padding": self.mask_padding,
        }
