"""The architectures of Loem et al. 2022: what takes the place of self-attention."""

from collections.abc import Callable
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any
from typing import NamedTuple

from keras_attnvariants.models import lowest
from keras_attnvariants.presets.configs import layer_config
from keras_attnvariants.presets.configs import learned_attention

N = 5


class Stack(NamedTuple):
    """The encoder or the decoder, as far as its self-attention depends on it.

    Attributes:
        causal: whether it is the decoder.
        num_layers: number of layers.
        num_heads: number of heads per layer.
        intermediate_dim: width of the feed-forward sub-layers.
        dropout: rate on the output of sub-layers.
        attention: further arguments of attention layers.
    """

    causal: bool
    num_layers: int
    num_heads: int
    intermediate_dim: int
    dropout: float
    attention: Mapping[str, Any]


# Self-attention of a stack: one configuration for all layers, or one for each.


def self_attention(stack: Stack) -> dict[str, Any]:
    """Learned attention."""
    return learned_attention(stack.num_heads, **stack.attention)


def local_attention(stack: Stack) -> dict[str, Any]:
    """Learned attention to the window of `neural_ngram_as_written`."""
    return layer_config(
        "LocalAttention", num_heads=stack.num_heads, n=N, **stack.attention
    )


def neural_ngram(stack: Stack, n: int = N, **options: Any) -> dict[str, Any]:
    """Neural n-grams with the published number of parameters.

    See `NeuralNgram.param_matched`.
    """
    reach = n if stack.causal else (n + 1) // 2
    config = {
        "num_heads": stack.num_heads,
        "n": reach,
        "causal": stack.causal,
        "output_projection": False,
    }
    return layer_config("NeuralNgram", **{**config, **options})


def neural_ngram_as_written(stack: Stack) -> dict[str, Any]:
    """Neural n-grams as the paper's text defines them; a head reads a slice."""
    return layer_config(
        "NeuralNgram", num_heads=stack.num_heads, n=N, causal=stack.causal
    )


def growing_ngram(stack: Stack) -> list[dict[str, Any]]:
    """N-grams without a global vector; `n` is 3, 5, 7, 9 by quarters of the layers."""
    return [
        neural_ngram(stack, 3 + 2 * (4 * i // stack.num_layers), global_context=False)
        for i in range(stack.num_layers)
    ]


def lowest_ngram(stack: Stack, count: int) -> list[dict[str, Any]]:
    """N-grams without a global vector in the lowest layers, learned attention above."""
    ngram = neural_ngram(stack, global_context=False)
    return lowest(count, ngram, self_attention(stack), stack.num_layers)


def concatenated_ngram(stack: Stack) -> list[dict[str, Any] | None]:
    """Concatenated n-grams in the first layer, where they are the feed-forward too."""
    ngram = layer_config(
        "ConcatenatedNgram",
        hidden_dim=stack.intermediate_dim,
        n=N,
        causal=stack.causal,
        dropout=stack.dropout,
    )
    return lowest(1, ngram, None, stack.num_layers)


@dataclass(frozen=True)
class Loem2022Architecture:
    """What takes the place of self-attention, in any size.

    Attributes:
        encoder, decoder: functions from a `Stack` to its self-attention.
        first_feed_forward: whether the first layer has a feed-forward sub-layer.
    """

    encoder: Callable[[Stack], Any]
    decoder: Callable[[Stack], Any]
    first_feed_forward: bool = True

    def arguments(
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
            num_heads: number of heads per layer.
            intermediate_dim: width of the feed-forward sub-layers.
            dropout: rate on embeddings and on the output of sub-layers.
            num_decoder_layers: number of decoder blocks; `None` for `num_layers`.
            attention: further arguments of all attention layers.
            **sizes: further arguments, passed on unchanged.
        """
        attention = attention or {}
        encoder = Stack(
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
            "cross_attention": learned_attention(num_heads, **attention),
            "feed_forward": feed_forward,
        }


def both(attention: Callable[..., Any], **options: Any) -> Loem2022Architecture:
    """The same self-attention in encoder and decoder."""
    attention = partial(attention, **options)
    return Loem2022Architecture(attention, attention)


SELF_ATTENTION = both(self_attention)
LOCAL_ATTENTION = both(local_attention)
CONCATENATED_NGRAM = Loem2022Architecture(
    concatenated_ngram, concatenated_ngram, first_feed_forward=False
)
NEURAL_NGRAM = both(neural_ngram)
AS_WRITTEN = both(neural_ngram_as_written)
SINGLE_HEAD = both(neural_ngram, num_heads=1)
NO_GLOBAL = both(neural_ngram, global_context=False)
GROWING = both(growing_ngram)
DECODER_NGRAM = Loem2022Architecture(self_attention, neural_ngram)
ENCODER_NGRAM = Loem2022Architecture(neural_ngram, self_attention)


def lowest_ngrams(count: int) -> Loem2022Architecture:
    """N-grams in the `count` lowest layers of encoder and decoder, attention above."""
    return both(lowest_ngram, count=count)
