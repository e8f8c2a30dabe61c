"""The encoder-decoder Transformer, with any attention variant in any place."""

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from keras_attnvariants.attention import BaseAttention
from keras_attnvariants.attention.checks import check_positive
from keras_attnvariants.attention.registry import PACKAGE
from keras_attnvariants.models import templates
from keras_attnvariants.models.base import TranslationModel
from keras_attnvariants.models.base import without_padding
from keras_attnvariants.models.blocks import PLACEMENTS
from keras_attnvariants.models.blocks import layer_norm
from keras_attnvariants.models.blocks import run_blocks
from keras_attnvariants.models.checks import check_choice
from keras_attnvariants.models.checks import check_length
from keras_attnvariants.models.embeddings import TYING
from keras_attnvariants.models.embeddings import TokenEmbeddings
from keras_attnvariants.models.positions import SinusoidalPositions
from keras_attnvariants.models.positions import embedding_dim
from keras_attnvariants.models.stacks import decoder_blocks
from keras_attnvariants.models.stacks import encoder_blocks

Templates = BaseAttention | None | Sequence[BaseAttention | None]


@keras.saving.register_keras_serializable(package=PACKAGE)
class Transformer(TranslationModel):
    """An encoder-decoder Transformer (Vaswani et al. 2017) of attention variants.

    Attention layers are given as templates, which are cloned for every layer.
    The model is a *step model*: `encode`, `initial_state` and `step` are all
    that decoding, scoring and serving know of it.

    Args:
        vocabulary_size: number of tokens.
        num_layers: number of encoder blocks, and of decoder blocks.
        hidden_dim: width of the model.
        intermediate_dim: width of the feed-forward sub-layers.
        encoder_attention, decoder_attention, cross_attention: a template, a
            list of one per layer, or `None`; `None` removes the sub-layer with
            its residual and normalisation.
        num_decoder_layers: number of decoder blocks, if it differs.
        feed_forward: whether blocks have a feed-forward sub-layer; one bool, or
            one per layer, the same for encoder and decoder.
        dropout: rate on the embeddings and on the output of every sub-layer.
        feed_forward_dropout: rate inside the feed-forward sub-layers.
        activation: of the feed-forward sub-layers.
        normalization: `"pre"` (and once after the last block) or `"post"`.
        positions: layer that gives embeddings their positions; `None` for
            `SinusoidalPositions`.
        embedding_scale: whether embeddings are multiplied by `sqrt(hidden_dim)`.
        tie_embeddings: `"all"`, `"decoder"` (target and output) or `"none"`.
        softmax_bias: whether the output projection has a bias.
        source_vocabulary_size: number of source tokens; `None` if source and target
            share one vocabulary.
        max_length: longest source or target, in tokens, that is accepted.
        pad_id, bos_id, eos_id: ids of the special tokens.

    Raises:
        TypeError, ValueError: an argument is out of range, a list has the wrong
            length, or a variant was put where its equation makes no sense.

    Example:

    >>> import numpy as np
    >>> from keras_attnvariants.attention import DotProductAttention
    >>> from keras_attnvariants.attention import HardCodedAttention
    >>> model = Transformer(
    ...     vocabulary_size=100, num_layers=2, hidden_dim=16, intermediate_dim=32,
    ...     encoder_attention=HardCodedAttention(num_heads=4, offsets=(-1, 1)),
    ...     decoder_attention=HardCodedAttention(num_heads=4, offsets=(-1, 0)),
    ...     cross_attention=[None, DotProductAttention(num_heads=1)],
    ... )
    >>> ids = np.array([[5, 6, 7, 0]])
    >>> model({"source_ids": ids, "target_ids": ids}).shape
    TensorShape([1, 4, 100])
    """

    def __init__(
        self,
        vocabulary_size: int,
        num_layers: int,
        hidden_dim: int,
        intermediate_dim: int,
        encoder_attention: Templates,
        decoder_attention: Templates,
        cross_attention: Templates,
        num_decoder_layers: int | None = None,
        feed_forward: bool | Sequence[bool] = True,
        dropout: float = 0.1,
        feed_forward_dropout: float = 0.0,
        activation: str = "relu",
        normalization: str = "pre",
        positions: keras.layers.Layer | None = None,
        embedding_scale: bool = True,
        tie_embeddings: str = "all",
        softmax_bias: bool = False,
        source_vocabulary_size: int | None = None,
        max_length: int = 512,
        pad_id: int = 0,
        bos_id: int = 2,
        eos_id: int = 3,
        **kwargs: Any,
    ):
        super().__init__(locals(), **kwargs)
        self.hidden_dim = check_positive("hidden_dim", hidden_dim)
        check_choice("normalization", normalization, PLACEMENTS)
        check_choice("tie_embeddings", tie_embeddings, TYING)
        positions = positions or SinusoidalPositions(max_length)
        check_length("max_length", max_length, positions.max_length)
        self.embeddings = TokenEmbeddings(
            vocabulary_size,
            self.source_vocabulary_size,
            hidden_dim,
            embedding_dim(hidden_dim, positions),
            templates.clone(positions, self.dtype_policy, "positions"),
            embedding_scale,
            tie_embeddings,
            softmax_bias,
            dropout,
            dtype=self.dtype_policy,
            name="embeddings",
        )
        self.encoder_blocks = encoder_blocks(self._config, self.dtype_policy)
        self.decoder_blocks = decoder_blocks(self._config, self.dtype_policy)
        self.encoder_norm = self.decoder_norm = None
        if normalization == "pre":
            self.encoder_norm = layer_norm(self.dtype_policy, "encoder_norm")
            self.decoder_norm = layer_norm(self.dtype_policy, "decoder_norm")
        self.build()

    def build(self, input_shape=None):
        shape = (None, None, self.hidden_dim)
        self.embeddings.build()
        for block in (*self.encoder_blocks, *self.decoder_blocks):
            block.build(shape)
        if self.encoder_norm is not None:
            self.encoder_norm.build(shape)
            self.decoder_norm.build(shape)
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
        return self.logits(self.decode(inputs, training))

    def attention_scores(self, inputs, training=False) -> dict[str, dict[str, Any]]:
        """The attention weights of all layers in a full pass.

        Args:
            inputs: as for `call`.
            training: whether dropout is applied; never to the weights returned.

        Returns:
            Float32 weights by block and sub-layer, as the layers return them:
            `["encoder_0"]["self"]`, `["decoder_0"]["self"]`, `["decoder_0"]["cross"]`,
            … A sub-layer without weights has no entry. Rows of padding are 0.
        """
        scores: dict[str, dict[str, Any]] = {}
        self.decode(inputs, training, scores)
        for blocks, ids in (
            (self.encoder_blocks, inputs["source_ids"]),
            (self.decoder_blocks, inputs["target_ids"]),
        ):
            real = ops.not_equal(ids, self.pad_id)
            for block in blocks:
                scores[block.name] = {
                    sublayer: without_padding(weights, real)
                    for sublayer, weights in scores[block.name].items()
                }
        return scores

    def decode(self, inputs, training=None, scores=None):
        """The last decoder block's output `[B, T, hidden_dim]`; see `run_blocks`."""
        encoded, mask = self.encode_source(inputs["source_ids"], training, scores)
        check_length("target_ids", inputs["target_ids"].shape[1], self.max_length)
        x = self.embeddings.embed_target(inputs["target_ids"], training=training)
        options = {"encoded": encoded, "encoded_mask": mask, "training": training}
        return run_blocks(self.decoder_blocks, x, scores, **options)

    def encode_source(self, source_ids, training=None, scores=None):
        """The encoded source `[B, S, hidden_dim]` and its bool mask `[B, S]`."""
        check_length("source_ids", source_ids.shape[1], self.max_length)
        mask = ops.not_equal(source_ids, self.pad_id)
        x = self.embeddings.embed_source(source_ids, training=training)
        options = {"source_mask": mask, "training": training}
        x = run_blocks(self.encoder_blocks, x, scores, **options)
        return (x if self.encoder_norm is None else self.encoder_norm(x)), mask

    def logits(self, x):
        """`[..., hidden_dim]` to `[..., vocabulary_size]`."""
        if self.decoder_norm is not None:
            x = self.decoder_norm(x)
        return self.embeddings.logits(x)

    # The step-model protocol

    def encode(self, source_ids) -> dict[str, Any]:
        """What decoding needs of the source: nested tensors `[B, ...]`.

        Args:
            source_ids: int `[B, S]`, padded on the right with `pad_id`.
        """
        encoded, mask = self.encode_source(source_ids, training=False)
        return {
            block.name: block.prepare(encoded, mask) for block in self.decoder_blocks
        } | {"mask": mask}

    def initial_state(self, context, beams: int, max_length: int) -> dict[str, Any]:
        """The state before the first position: nested tensors `[B, K, ...]`."""
        check_length("max_length", max_length, self.max_length)
        batch = ops.shape(context["mask"])[0]
        return {
            block.name: block.initial_state(
                batch, beams, max_length, context[block.name]
            )
            for block in self.decoder_blocks
        }

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
            the weights of the last cross-attention, averaged over its heads:
            float32 `[B, K, S]`, 0 if the model has none.
        """
        x = self.embeddings.embed_step(tokens, position)
        state, alignment = dict(state), None
        for block in self.decoder_blocks:
            x, state[block.name], scores = block.step(
                x,
                position,
                state[block.name],
                context[block.name],
                return_attention_scores,
            )
            alignment = alignment if scores is None else scores
        logits = self.logits(x)
        if not return_attention_scores:
            return logits, state
        if alignment is None:
            shape = (*ops.shape(tokens), ops.shape(context["mask"])[1])
            alignment = ops.zeros(shape, "float32")
        return logits, state, alignment
