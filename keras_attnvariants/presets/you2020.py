"""You, Sun and Iyyer 2020: hard-coded Gaussian attention.

Each preset is one architecture on one corpus, in the size that the paper uses for the
corpus. Settings that the paper leaves open are those of its released code:
post-normalization, dropout on embeddings and sub-layer outputs only, no biases in
attention, all embeddings tied.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

from keras_attnvariants.presets.papers import register_paper
from keras_attnvariants.presets.preset import layer_config
from keras_attnvariants.presets.preset import learned_attention

# The released code initializes the projections to queries, keys and values as one
# stacked matrix of 3 d rows. Glorot's bound is then sqrt(6 / 4d), equivalent to a scale
# of 0.5 for each projection.
STACKED_GLOROT = {
    "class_name": "VarianceScaling",
    "config": {"scale": 0.5, "mode": "fan_avg", "distribution": "uniform"},
}

# Initializers of learned attention in the released code.
INITIALIZERS = {
    "kernel_initializer": STACKED_GLOROT,
    "output_initializer": "glorot_uniform",
}

LEFT, CENTER, RIGHT = -1, 0, 1

# Offsets of the layers that are not the lowest or the highest.
ENCODER, DECODER = (LEFT, RIGHT), (LEFT, CENTER)


def architecture(
    num_layers: int,
    num_heads: int,
    self_attention: str | None = "learned",
    cross_attention: str = "learned",
    last_layers: int = 1,
    last_heads: int = 1,
    outer_offsets: tuple[Sequence[int], Sequence[int]] = (ENCODER, DECODER),
    length_ratio: float = 1.0,
    **sizes: Any,
) -> dict[str, Any]:
    """The arguments of `Transformer`, in the form of its `get_config`.

    Args:
        num_layers: number of encoder blocks, and of decoder blocks.
        num_heads: number of heads per attention layer, except for `"last"`.
        self_attention: `"learned"`, `None` for no self-attention, or the
            implementation of hard-coded self-attention: `"gaussian"`, `"conv"` or
            `"index"`.
        cross_attention: `"learned"`, `"gaussian"`, or `"last"`: learned in the last
            decoder layers and absent below.
        last_layers: number of those layers, for `"last"`.
        last_heads: number of heads in each of them; together they are as wide as the
            model.
        outer_offsets: offsets of the lowest and the highest layer, in the encoder and
            in the decoder; all other layers have (left, right) in the encoder and
            (left, center) in the decoder.
        length_ratio: length ratio of hard-coded cross-attention.
        **sizes: further arguments, passed on unchanged.
    """
    learned = learned_attention(num_heads, **INITIALIZERS)

    def hard_coded(offsets: Sequence[int]) -> dict[str, Any]:
        return layer_config(
            "HardCodedAttention",
            num_heads=num_heads,
            offsets=list(offsets),
            implementation=self_attention,
        )

    def stack(offsets: Sequence[int], outer_offsets: Sequence[int]) -> Any:
        if self_attention in (None, "learned"):
            return None if self_attention is None else learned
        usual, outer = hard_coded(offsets), hard_coded(outer_offsets)
        if usual == outer:
            return usual
        return [outer if i in (0, num_layers - 1) else usual for i in range(num_layers)]

    cross: Any = learned
    if cross_attention == "last":
        heads = learned_attention(last_heads, **INITIALIZERS)
        cross = [None] * (num_layers - last_layers) + [heads] * last_layers
    elif cross_attention == "gaussian":
        # The paper lists left, center and right; its released command has no center.
        cross = layer_config(
            "HardCodedCrossAttention",
            num_heads=num_heads,
            offsets=[LEFT, RIGHT],
            length_ratio=length_ratio,
        )
    return {
        "feed_forward": True,
        **sizes,
        "num_layers": num_layers,
        "encoder_attention": stack(ENCODER, outer_offsets[0]),
        "decoder_attention": stack(DECODER, outer_offsets[1]),
        "cross_attention": cross,
    }


# Arguments of `architecture` by model; `*-no-ff` is the paper's `*/-ff`.
MAIN: dict[str, dict[str, Any]] = {
    "base": {},
    "hc-sa": {"self_attention": "gaussian"},
    "hc-all": {"self_attention": "gaussian", "cross_attention": "gaussian"},
    "sh-x": {"self_attention": "gaussian", "cross_attention": "last"},
}
VARIANTS: dict[str, dict[str, Any]] = {
    **MAIN,
    "base-no-sa": {"self_attention": None},
    "sh-x-no-sa": {"self_attention": None, "cross_attention": "last"},
    **{f"{name}-no-ff": {**MAIN[name], "feed_forward": False} for name in MAIN},
    "conv": {"self_attention": "conv"},
    "index": {"self_attention": "index"},
    **{
        name: {**MAIN["hc-sa"], "outer_offsets": offsets}
        for name, offsets in {
            "hc-sa-ll-ll": ((LEFT, LEFT), (LEFT, LEFT)),
            "hc-sa-ll-cc": ((LEFT, LEFT), (CENTER, CENTER)),
            "hc-sa-ll-lc": ((LEFT, LEFT), (LEFT, CENTER)),
        }.items()
    },
    **{f"sh-x-{n}-heads": {**MAIN["sh-x"], "last_heads": n} for n in (2, 3, 4)},
    **{f"sh-x-{n}-layers": {**MAIN["sh-x"], "last_layers": n} for n in (2, 3, 4, 5)},
}

register_paper("you2020", lambda model: partial(architecture, **VARIANTS[model]))
