"""The encoder-decoder Transformer, with any attention variant in any place."""

from collections.abc import Mapping
from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

import keras
from keras import ops

from keras_attnvariants.attention.cache import with_common_histories
from keras_attnvariants.attention.calls import zero_masked
from keras_attnvariants.attention.registry import PACKAGE
from keras_attnvariants.models import templates
from keras_attnvariants.models.base import EncoderDecoder
from keras_attnvariants.models.base import check_length
from keras_attnvariants.models.base import no_alignment
from keras_attnvariants.models.blocks import DecoderBlock
from keras_attnvariants.models.blocks import EncoderBlock
from keras_attnvariants.models.blocks import Scores
from keras_attnvariants.models.blocks import apply_blocks
from keras_attnvariants.models.embeddings import TYING
from keras_attnvariants.models.embeddings import TokenEmbeddings
from keras_attnvariants.models.embeddings import with_token
from keras_attnvariants.models.embeddings import without_token
from keras_attnvariants.models.positions import SinusoidalPositions
from keras_attnvariants.models.positions import embedding_dim
from keras_attnvariants.models.speech import ctc_loss
from keras_attnvariants.models.sublayers import PLACEMENTS
from keras_attnvariants.models.sublayers import layer_norm
from keras_attnvariants.models.templates import Templates
from keras_attnvariants.utils.checks import check_choice
from keras_attnvariants.utils.checks import check_integer
from keras_attnvariants.utils.checks import check_optional_integer
from keras_attnvariants.utils.checks import check_share
from keras_attnvariants.utils.typing import NestedTensors
from keras_attnvariants.utils.typing import Shape
from keras_attnvariants.utils.typing import State
from keras_attnvariants.utils.typing import Tensor

# Local names in the constructor of `Transformer` that it does not store itself.
NOT_STORED = ("self", "__class__", "vocabulary_size", "kwargs")


@keras.saving.register_keras_serializable(package=PACKAGE)
class Transformer(EncoderDecoder):
    """An encoder-decoder Transformer (Vaswani et al. 2017) of attention variants.

    Attention layers are given as templates, which are cloned for every block.

    Args:
        vocabulary_size: number of tokens.
        num_layers: number of encoder blocks, and of decoder blocks.
        hidden_dim: width of the model.
        intermediate_dim: width of the feed-forward sub-layers.
        encoder_attention, decoder_attention, cross_attention: a template, a
            list of one per block, or `None`; `None` removes the sub-layer with
            its residual and normalization.
        num_decoder_layers: number of decoder blocks, if it differs.
        feed_forward: whether blocks have a feed-forward sub-layer; one bool, or
            one per block, the same for encoder and decoder.
        dropout: rate on the embeddings and on the output of every sub-layer.
        feed_forward_dropout: rate inside the feed-forward sub-layers.
        activation: activation of the feed-forward sub-layers.
        normalization: `"pre"` (also once after the last block) or `"post"`.
        positions: layer that adds positions to embeddings or concatenates them; `None`
            for `SinusoidalPositions`.
        embedding_scale: whether embeddings are multiplied by `sqrt(hidden_dim)`.
        tie_embeddings: `"all"`, `"decoder"` (target and output) or `"none"`.
        softmax_bias: whether the output projection has a bias.
        source_eos: whether the model appends an EOS to the source ids. Returned
            attention weights do not include it.
        source_embedding: template of the layer that replaces the source embeddings,
            such as `SpeechFrontEnd`. `tie_embeddings="all"` then ties target and output
            embeddings only, and the layer defines the size of the source vocabulary.
        **kwargs: as in `EncoderDecoder`: `source_vocabulary_size` if it differs,
            `max_length` (512), `pad_id` (0), `bos_id` (2), `eos_id` (3), `dtype`, ….

    Attributes:
        ctc_weight: factor of a `ctc_loss` in training, with logits that the output
            projection computes from the encoder's outputs; `None` for no such loss. It
            is not part of the configuration.

    Raises:
        TypeError, ValueError: an argument is out of range, a list has the wrong
            length, or a variant cannot serve in its place.

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
        source_eos: bool = False,
        source_embedding: keras.layers.Layer | None = None,
        **kwargs: Any,
    ) -> None:
        given = {k: v for k, v in locals().items() if k not in NOT_STORED}
        names = "pad_id", "source_vocabulary_size"
        of_source = {name: kwargs.get(name) for name in names}
        templates.check_source_embedding(
            source_embedding, source_eos=source_eos, **of_source
        )
        if source_embedding is not None:
            kwargs = kwargs | {"source_vocabulary_size": None}
        super().__init__(vocabulary_size, **kwargs)
        if source_embedding is not None:
            self.source_vocabulary_size = source_embedding.vocabulary_size
            self.source_stride = source_embedding.stride
        for name in ("num_layers", "hidden_dim", "intermediate_dim"):
            given[name] = check_integer(name, given[name])
        given["num_decoder_layers"] = check_optional_integer(
            "num_decoder_layers", num_decoder_layers
        )
        check_share("dropout", dropout)
        check_choice("normalization", normalization, PLACEMENTS)
        check_choice("tie_embeddings", tie_embeddings, TYING)
        # A proxy: layers in a plain dict would become layers of the model.
        self._given: Mapping[str, Any] = MappingProxyType(given)
        self.hidden_dim: int = given["hidden_dim"]
        self.source_eos = source_eos
        self.ctc_weight: float | None = None
        self.create_layers()
        self.build()

    def create_layers(self) -> None:
        """Creates the layers of the model from the arguments of the constructor."""
        dtype, given = self.dtype_policy, self._given
        longest = self.max_length + self.source_eos
        positions = given["positions"] or SinusoidalPositions(longest)
        check_length("max_length", longest, positions.max_length)
        self.embeddings = TokenEmbeddings(
            self.vocabulary_size,
            self.source_vocabulary_size,
            self.hidden_dim,
            embedding_dim(self.hidden_dim, positions),
            templates.clone(positions, dtype, "positions"),
            given["embedding_scale"],
            given["tie_embeddings"],
            given["softmax_bias"],
            given["dropout"],
            templates.clone(given["source_embedding"], dtype, "source"),
            dtype=dtype,
            name="embeddings",
        )
        depth = given["num_layers"]
        self.encoder_blocks = templates.blocks(EncoderBlock, depth, given, dtype)
        depth = given["num_decoder_layers"] or depth
        self.decoder_blocks = templates.blocks(DecoderBlock, depth, given, dtype)
        self.encoder_norm = self.decoder_norm = None
        if given["normalization"] == "pre":
            self.encoder_norm = layer_norm(dtype, "encoder_norm")
            self.decoder_norm = layer_norm(dtype, "decoder_norm")

    def build(self, input_shape: Shape | None = None) -> None:
        """Creates all weights; the constructor calls it."""
        shape = (None, None, self.hidden_dim)
        self.embeddings.build()
        for block in (*self.encoder_blocks, *self.decoder_blocks):
            block.build(shape)
        for norm in (self.encoder_norm, self.decoder_norm):
            if norm is not None:
                norm.build(shape)
        self.built = True

    def call(self, inputs: dict[str, Tensor], training: bool | None = None) -> Tensor:
        """Logits `[B, T, V]` for each target position, given all tokens before it.

        Args:
            inputs: int `source_ids` `[B, S]` and `target_ids` `[B, T]` (starting with
                BOS), both padded on the right with `pad_id`. With a
                `source_embedding`, `S` is rounded up to a multiple of its stride.
            training: whether dropout is applied.

        Raises:
            ValueError: a sequence is known to be longer than `max_length`.
        """
        guidance = self.guidance_of(inputs, training)
        if guidance is None:
            return self.logits(self.run_decoder(inputs, training))
        block = self.decoder_blocks[guidance.layer - 1]
        scores: dict[str, Scores] = {block.name: {}}
        x = self.run_decoder(inputs, training, scores)
        rows = ops.swapaxes(scores[block.name]["cross"], 1, 2)  # [B, T, H, S]
        attention: Any = block.cross_attention
        weights = attention.alignment(rows)
        if self.source_eos:
            weights = weights[..., :-1]
        self.add_loss(guidance.loss(weights, inputs))
        return self.logits(x)

    def guidable_layers(self) -> list[int]:
        layers = enumerate((b.cross_attention for b in self.decoder_blocks), start=1)
        return [
            number
            for number, layer in layers
            if layer is not None
            and layer.has_scores
            and getattr(layer, "reads_query", True)
        ]

    def attention_scores(
        self, inputs: dict[str, Tensor], training: bool | None = False
    ) -> dict[str, Scores]:
        """The attention weights of all layers in a full pass.

        Args:
            inputs: as for `call`.
            training: whether dropout is applied, but never to the returned weights.

        Returns:
            Float32 weights by block and sub-layer, as the layers return them:
            `["encoder_0"]["self"]`, `["decoder_0"]["self"]`, `["decoder_0"]["cross"]`,
            …; a sub-layer without weights has no entry. Rows of padding are 0.
        """
        blocks = [*self.encoder_blocks, *self.decoder_blocks]
        scores: dict[str, Scores] = {block.name: {} for block in blocks}
        self.run_decoder(inputs, training, scores)
        source = self.source_mask(inputs["source_ids"])
        target = ops.not_equal(inputs["target_ids"], self.pad_id)
        with_eos = self.source_mask(self.read_source(inputs["source_ids"]))
        for block in blocks:
            is_encoder, found = isinstance(block, EncoderBlock), scores[block.name]
            for sublayer, weights in found.items():
                if self.source_eos and (is_encoder or sublayer == "cross"):
                    weights = without_token(weights, with_eos)
                if self.source_eos and is_encoder:
                    weights = weights[..., :-1, :]
                real = source if is_encoder else target
                found[sublayer] = zero_masked(weights, real, axis=2)
        return scores

    def read_source(self, source_ids: Tensor) -> Tensor:
        """Source ids `[B, S]` as the encoder reads them: with EOS if `source_eos`."""
        if not self.source_eos:
            return source_ids
        return with_token(source_ids, self.eos_id, self.pad_id)

    def source_mask(self, source_ids: Tensor) -> Tensor:
        """A mask of the real positions of the encoder: bool `[B, S]`."""
        if self.source_stride > 1:
            return self.embeddings.source.mask(source_ids)
        return ops.not_equal(source_ids, self.pad_id)

    def run_decoder(
        self,
        inputs: dict[str, Tensor],
        training: bool | None = None,
        scores: dict[str, Scores] | None = None,
    ) -> Tensor:
        """The output of the last decoder block, `[B, T, hidden_dim]`.

        Weights are added to `scores`, as `apply_blocks` does.
        """
        encoded, mask = self.run_encoder(inputs["source_ids"], training, scores)
        if training and self.ctc_weight is not None:
            logits, target_ids = self.embeddings.logits(encoded), inputs["target_ids"]
            loss = ctc_loss(logits, mask, target_ids, self.pad_id)
            self.add_loss(self.ctc_weight * loss)
        check_length("target_ids", inputs["target_ids"].shape[1], self.max_length)
        x = self.embeddings.embed_target(inputs["target_ids"], training=training)
        options = {"encoded": encoded, "source_mask": mask, "training": training}
        return apply_blocks(self.decoder_blocks, x, scores, **options)

    def run_encoder(
        self,
        source_ids: Tensor,
        training: bool | None = None,
        scores: dict[str, Scores] | None = None,
    ) -> tuple[Tensor, Tensor]:
        """The encoded source `[B, S, hidden_dim]` and its bool mask `[B, S]`.

        With `source_eos`, they have one more position.
        """
        longest = self.max_length * self.source_stride
        check_length("source_ids", source_ids.shape[1], longest)
        source_ids = self.read_source(source_ids)
        mask = self.source_mask(source_ids)
        x = self.embeddings.embed_source(source_ids, training=training)
        options = {"source_mask": mask, "training": training}
        x = apply_blocks(self.encoder_blocks, x, scores, **options)
        return (x if self.encoder_norm is None else self.encoder_norm(x)), mask

    def logits(self, x: Tensor) -> Tensor:
        """`[..., hidden_dim]` to `[..., vocabulary_size]`."""
        if self.decoder_norm is not None:
            x = self.decoder_norm(x)
        return self.embeddings.logits(x)

    # The step-model protocol

    def encode(self, source_ids: Tensor) -> State:
        """The memory of each cross-attention, and the mask of a source `[B, S]`."""
        encoded, mask = self.run_encoder(source_ids, training=False)
        return {
            block.name: block.prepare(encoded, mask) for block in self.decoder_blocks
        } | {"mask": mask}

    def initial_state(
        self, context: NestedTensors, beams: int, max_length: int
    ) -> State:
        """The states of the decoder blocks before the first position."""
        check_length("max_length", max_length, self.max_length)
        batch = ops.shape(context["mask"])[0]
        return {
            block.name: block.initial_state(
                batch, beams, max_length, context[block.name]
            )
            for block in self.decoder_blocks
        }

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
        holds the weights of the last cross-attention that has weights, averaged over
        heads, or 0 if there is none.
        """
        x = self.embeddings.embed_step(tokens, position)
        state, alignment = with_common_histories(state), None
        for block in self.decoder_blocks:
            x, state[block.name], scores = block.step(
                x,
                position,
                state[block.name],
                context[block.name],
                return_attention_scores,
            )
            alignment = alignment if scores is None else scores
        logits, state = self.logits(x), with_common_histories(state)
        if not return_attention_scores:
            return logits, state
        if alignment is None:
            alignment = no_alignment(tokens, context["mask"])
        if self.source_eos:
            alignment = without_token(alignment, context["mask"])
        return logits, state, alignment

    # Keras

    def get_config(self) -> dict[str, Any]:
        given = {k: templates.serialize(value) for k, value in self._given.items()}
        return super().get_config() | given
