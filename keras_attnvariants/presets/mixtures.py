"""What Loem et al. (2022) put in the place of self-attention, stack by stack."""

from collections.abc import Callable
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any
from typing import NamedTuple

from keras_attnvariants.models import lowest
from keras_attnvariants.presets.layers import layer
from keras_attnvariants.presets.layers import learned

N = 5


class Side(NamedTuple):
    """What a stack of self-attention has to know of its place.

    Attributes:
        causal: whether it is that of the decoder.
        num_layers: number of layers.
        num_heads: heads per layer.
        intermediate_dim: width of hidden layers.
        dropout: rate on the output of sub-layers.
        attention: further arguments of attention layers.
    """

    causal: bool
    num_layers: int
    num_heads: int
    intermediate_dim: int
    dropout: float
    attention: Mapping[str, Any]


# The stacks: one description for all layers, or one for each


def self_attention(side: Side) -> dict[str, Any]:
    """Learned attention."""
    return learned(side.num_heads, **side.attention)


def local_attention(side: Side) -> dict[str, Any]:
    """Learned attention to the positions that an n-gram as written sees."""
    return layer("LocalAttention", num_heads=side.num_heads, n=N, **side.attention)


def neural_ngram(side: Side, n: int = N, **options: Any) -> dict[str, Any]:
    """Neural n-grams of the published size; see `NeuralNgram.param_matched`."""
    reach = n if side.causal else (n + 1) // 2
    config = {
        "num_heads": side.num_heads,
        "n": reach,
        "causal": side.causal,
        "output_projection": False,
    }
    return layer("NeuralNgram", **{**config, **options})


def neural_ngram_as_written(side: Side) -> dict[str, Any]:
    """Neural n-grams as the text and its equations define them."""
    return layer("NeuralNgram", num_heads=side.num_heads, n=N, causal=side.causal)


def growing_ngram(side: Side) -> list[dict[str, Any]]:
    """Without a global vector; `n` is 3 in the lowest quarter, then 5, 7 and 9."""
    return [
        neural_ngram(side, 3 + 2 * (4 * i // side.num_layers), global_context=False)
        for i in range(side.num_layers)
    ]


def lowest_ngram(side: Side, count: int) -> list[dict[str, Any]]:
    """N-grams without a global vector in the lowest layers, attention above."""
    ngram = neural_ngram(side, global_context=False)
    return lowest(count, ngram, self_attention(side), side.num_layers)


def concatenated_ngram(side: Side) -> list[dict[str, Any] | None]:
    """A concatenation in the first layer, which is feed-forward itself."""
    ngram = layer(
        "ConcatenatedNgram",
        hidden_dim=side.intermediate_dim,
        n=N,
        causal=side.causal,
        dropout=side.dropout,
    )
    return lowest(1, ngram, None, side.num_layers)


@dataclass(frozen=True)
class Variant:
    """What stands in the place of self-attention, for any size.

    Attributes:
        encoder, decoder: make the stack of one side.
        first_feed_forward: whether the first layer has a feed-forward sub-layer.
    """

    encoder: Callable[[Side], Any]
    decoder: Callable[[Side], Any]
    first_feed_forward: bool = True

    def architecture(
        self,
        num_layers: int,
        num_heads: int,
        intermediate_dim: int,
        dropout: float,
        num_decoder_layers: int | None = None,
        attention: Mapping[str, Any] | None = None,
        **sizes: Any,
    ) -> dict[str, Any]:
        """The arguments of `Transformer`, in the form of its `get_config`.

        Args:
            num_layers: number of encoder blocks.
            num_heads: heads per layer.
            intermediate_dim: width of the feed-forward sub-layers.
            dropout: rate on embeddings and on the output of sub-layers.
            num_decoder_layers: number of decoder blocks, if it differs.
            attention: further arguments of all attention layers.
            **sizes: further arguments, handed on as they are.
        """
        attention = attention or {}
        encoder = Side(
            False, num_layers, num_heads, intermediate_dim, dropout, attention
        )
        depth = num_layers if num_decoder_layers is None else num_decoder_layers
        feed_forward: bool | list[bool] = True
        if not self.first_feed_forward:
            feed_forward = lowest(1, False, True, num_layers)
        return {
            **sizes,
            "num_layers": num_layers,
            "num_decoder_layers": num_decoder_layers,
            "intermediate_dim": intermediate_dim,
            "dropout": dropout,
            "encoder_attention": self.encoder(encoder),
            "decoder_attention": self.decoder(
                encoder._replace(causal=True, num_layers=depth)
            ),
            "cross_attention": learned(num_heads, **attention),
            "feed_forward": feed_forward,
        }


def both(stack: Callable[..., Any], **options: Any) -> Variant:
    """The same on both sides."""
    stack = partial(stack, **options)
    return Variant(stack, stack)


SELF_ATTENTION = both(self_attention)
LOCAL_ATTENTION = both(local_attention)
CONCATENATED_NGRAM = Variant(
    concatenated_ngram, concatenated_ngram, first_feed_forward=False
)
NEURAL_NGRAM = both(neural_ngram)
AS_WRITTEN = both(neural_ngram_as_written)
SINGLE_HEAD = both(neural_ngram, num_heads=1)
NO_GLOBAL = both(neural_ngram, global_context=False)
GROWING = both(growing_ngram)
DECODER_NGRAM = Variant(self_attention, neural_ngram)
ENCODER_NGRAM = Variant(neural_ngram, self_attention)


def lowest_ngrams(count: int) -> Variant:
    """N-grams in so many of the lowest layers of both sides, attention above."""
    return both(lowest_ngram, count=count)
