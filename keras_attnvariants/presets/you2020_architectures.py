"""The architectures of You et al. 2020: what stands in each attention sub-layer."""

from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace
from typing import Any

from keras_attnvariants.models import highest
from keras_attnvariants.presets.configs import layer_config
from keras_attnvariants.presets.configs import learned_attention

# The released code initializes the projections to queries, keys and values as one
# stacked matrix of 3 d rows. Glorot's bound is then sqrt(6 / 4d), which is a scale of
# 0.5 for each projection.
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


@dataclass(frozen=True)
class You2020Architecture:
    """One row of the paper's tables, in any size.

    Attributes:
        self_attention: `"learned"`, `None` for no self-attention, or the
            implementation of hard-coded self-attention: `"gaussian"`, `"conv"` or
            `"index"`.
        cross_attention: `"learned"`, `"gaussian"`, or `"last"`: learned in the last
            decoder layers and absent below.
        last_layers: number of those layers, for `"last"`.
        last_heads: number of heads in each of them; together they are as wide as the
            model.
        feed_forward: whether there are feed-forward sub-layers.
        outer_offsets: offsets of the lowest and the highest layer, in the encoder and
            in the decoder; those of all other layers are (left, right) in the encoder
            and (left, center) in the decoder.
    """

    self_attention: str | None = "learned"
    cross_attention: str = "learned"
    last_layers: int = 1
    last_heads: int = 1
    feed_forward: bool = True
    outer_offsets: tuple[Sequence[int], Sequence[int]] = (
        (LEFT, RIGHT),
        (LEFT, CENTER),
    )

    def arguments(
        self, num_layers: int, num_heads: int, length_ratio: float = 1.0, **sizes: Any
    ) -> dict[str, Any]:
        """The arguments of `Transformer`, in the form of its `get_config`.

        Args:
            num_layers: number of encoder blocks, and of decoder blocks.
            num_heads: number of heads per attention layer, except for `"last"`.
            length_ratio: length ratio of hard-coded cross-attention.
            **sizes: further arguments, passed on unchanged.
        """
        outer_encoder, outer_decoder = self.outer_offsets
        return {
            **sizes,
            "num_layers": num_layers,
            "encoder_attention": self.stack(
                num_layers, num_heads, (LEFT, RIGHT), outer_encoder
            ),
            "decoder_attention": self.stack(
                num_layers, num_heads, (LEFT, CENTER), outer_decoder
            ),
            "cross_attention": self.cross(num_layers, num_heads, length_ratio),
            "feed_forward": self.feed_forward,
        }

    def stack(
        self,
        num_layers: int,
        num_heads: int,
        offsets: Sequence[int],
        outer_offsets: Sequence[int],
    ) -> Any:
        """The self-attention of one stack: one configuration, or one per layer."""
        if self.self_attention is None:
            return None
        if self.self_attention == "learned":
            return learned_attention(num_heads, **INITIALIZERS)
        usual, outer = (
            hard_coded(num_heads, pair, self.self_attention)
            for pair in (offsets, outer_offsets)
        )
        if usual == outer:
            return usual
        return [outer if i in (0, num_layers - 1) else usual for i in range(num_layers)]

    def cross(self, num_layers: int, num_heads: int, length_ratio: float) -> Any:
        """The cross-attention of the decoder: one configuration, or one per layer."""
        if self.cross_attention == "learned":
            return learned_attention(num_heads, **INITIALIZERS)
        if self.cross_attention == "last":
            heads = learned_attention(self.last_heads, **INITIALIZERS)
            return highest(self.last_layers, heads, None, num_layers)
        # The paper lists left, center and right; its released command has no center.
        return layer_config(
            "HardCodedCrossAttention",
            num_heads=num_heads,
            offsets=[LEFT, RIGHT],
            length_ratio=length_ratio,
        )


def hard_coded(
    num_heads: int, offsets: Sequence[int], implementation: str
) -> dict[str, Any]:
    """Hard-coded self-attention in serialized form."""
    return layer_config(
        "HardCodedAttention",
        num_heads=num_heads,
        offsets=list(offsets),
        implementation=implementation,
    )


def without_feed_forward(
    variants: dict[str, You2020Architecture],
) -> dict[str, You2020Architecture]:
    """The paper's `*/-ff`: the same architectures without feed-forward sub-layers."""
    return {
        f"{name}-no-ff": replace(variant, feed_forward=False)
        for name, variant in variants.items()
    }


MAIN = {
    "base": You2020Architecture(),
    "hc-sa": You2020Architecture("gaussian"),
    "hc-all": You2020Architecture("gaussian", "gaussian"),
    "sh-x": You2020Architecture("gaussian", "last"),
}

ARCHITECTURES = {
    **MAIN,
    "base-no-sa": You2020Architecture(None),
    "sh-x-no-sa": You2020Architecture(None, "last"),
    **without_feed_forward(MAIN),
    "conv": You2020Architecture("conv"),
    "index": You2020Architecture("index"),
}

# Table 6: offsets of the outer layers of encoder and decoder; `hc-sa` has (lr | lc).
OFFSETS = {
    name: You2020Architecture("gaussian", outer_offsets=(encoder, decoder))
    for name, encoder, decoder in (
        ("hc-sa-ll-ll", (LEFT, LEFT), (LEFT, LEFT)),
        ("hc-sa-ll-cc", (LEFT, LEFT), (CENTER, CENTER)),
        ("hc-sa-ll-lc", (LEFT, LEFT), (LEFT, CENTER)),
    )
}

# Figure 7: more heads in the last layer, or one head in each of several last layers.
CROSS_HEADS = {
    f"sh-x-{heads}-heads": replace(MAIN["sh-x"], last_heads=heads)
    for heads in (2, 3, 4)
} | {
    f"sh-x-{layers}-layers": replace(MAIN["sh-x"], last_layers=layers)
    for layers in (2, 3, 4, 5)
}
