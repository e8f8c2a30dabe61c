"""Loem, Takase, Kaneko and Okazaki 2022: multi-head neural n-grams.

Neural n-grams, local attention or learned attention serve as self-attention, in all
layers or in some. Settings that the paper leaves open are those of the original
Transformer: post-normalization, and biases in attention as in the library that the
paper used.

Neural n-grams have the form that matches the published number of parameters: no output
projection, and windows of `n` vectors in the encoder too. `neural-ngram-as-written`
follows the text of the paper instead, except that a head reads its slice of the vectors
in both.
"""

from collections.abc import Callable
from collections.abc import Mapping
from functools import partial
from typing import Any

from keras_attnvariants.presets.papers import register_paper
from keras_attnvariants.presets.preset import layer_config
from keras_attnvariants.presets.preset import learned_attention

N = 5

# The settings that determine the self-attention of a stack: arguments of
# `architecture`, and `causal`, true for the decoder.
Stack = Mapping[str, Any]


# Self-attention of a stack: one configuration for all layers, or one for each.


def self_attention(stack: Stack) -> dict[str, Any]:
    """Learned attention."""
    return learned_attention(stack["num_heads"], **stack["attention"])


def local_attention(stack: Stack) -> dict[str, Any]:
    """Learned attention to the window of `neural_ngram_as_written`."""
    return layer_config(
        "LocalAttention", num_heads=stack["num_heads"], n=N, **stack["attention"]
    )


def neural_ngram(stack: Stack, n: int = N, **options: Any) -> dict[str, Any]:
    """Neural n-grams with the published number of parameters.

    They have no `W`, and windows of `n` vectors, which are centred in encoders.
    """
    reach = n if stack["causal"] else (n + 1) // 2
    config = {"num_heads": stack["num_heads"], "n": reach, "causal": stack["causal"]}
    return layer_config(
        "NeuralNgram", **{**config, "output_projection": False, **options}
    )


def neural_ngram_as_written(stack: Stack) -> dict[str, Any]:
    """Neural n-grams as the paper's text defines them; a head reads a slice."""
    return layer_config(
        "NeuralNgram", num_heads=stack["num_heads"], n=N, causal=stack["causal"]
    )


def growing_ngram(stack: Stack) -> list[dict[str, Any]]:
    """N-grams without a global vector; `n` is 3, 5, 7, 9 by quarters of the layers."""
    depth = stack["num_layers"]
    return [
        neural_ngram(stack, 3 + 2 * (4 * i // depth), global_context=False)
        for i in range(depth)
    ]


def lowest_ngram(stack: Stack, count: int) -> list[dict[str, Any]]:
    """N-grams without a global vector in the lowest layers, learned attention above."""
    ngram = neural_ngram(stack, global_context=False)
    return [ngram] * count + [self_attention(stack)] * (stack["num_layers"] - count)


def concatenated_ngram(stack: Stack) -> list[dict[str, Any] | None]:
    """Concatenated n-grams in the first layer, also in place of its feed-forward."""
    ngram = layer_config(
        "ConcatenatedNgram",
        hidden_dim=stack["intermediate_dim"],
        n=N,
        causal=stack["causal"],
        dropout=stack["dropout"],
    )
    return [ngram] + [None] * (stack["num_layers"] - 1)


def architecture(
    encoder: Callable[[Stack], Any],
    decoder: Callable[[Stack], Any],
    num_heads: int,
    attention: Mapping[str, Any] | None = None,
    **sizes: Any,
) -> dict[str, Any]:
    """The arguments of `Transformer`, in the form of its `get_config`.

    Args:
        encoder, decoder: functions from a `Stack` to its self-attention.
        num_heads: number of heads per layer.
        attention: further arguments of all attention layers.
        **sizes: further arguments, passed on unchanged.
    """
    stack = {**sizes, "num_heads": num_heads, "attention": attention or {}}
    depth = sizes["num_layers"]
    decoder_depth = sizes.get("num_decoder_layers") or depth
    feed_forward: bool | list[bool] = True
    if encoder is concatenated_ngram:
        feed_forward = [False] + [True] * (depth - 1)
    return {
        **sizes,
        "encoder_attention": encoder({**stack, "causal": False}),
        "decoder_attention": decoder(
            {**stack, "causal": True, "num_layers": decoder_depth}
        ),
        "cross_attention": self_attention(stack),
        "feed_forward": feed_forward,
    }


def both(attention: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """The architecture with the same self-attention in encoder and decoder."""
    if options:
        attention = partial(attention, **options)
    return partial(architecture, attention, attention)


ARCHITECTURES: dict[str, Callable[..., dict[str, Any]]] = {
    "self-attention": both(self_attention),
    "local-attention": both(local_attention),
    "concatenated-ngram": both(concatenated_ngram),
    "neural-ngram": both(neural_ngram),
    "neural-ngram-depth-6": both(neural_ngram),
    "neural-ngram-single-head": both(neural_ngram, num_heads=1),
    "neural-ngram-no-global": both(neural_ngram, global_context=False),
    "neural-ngram-growing": both(growing_ngram),
    "neural-ngram-as-written": both(neural_ngram_as_written),
    "decoder-ngram": partial(architecture, self_attention, neural_ngram),
    "encoder-ngram": partial(architecture, neural_ngram, self_attention),
    **{f"lowest-{m}-ngram": both(lowest_ngram, count=m) for m in range(1, 7)},
}

register_paper("loem2022", ARCHITECTURES.__getitem__)
