"""What You et al. (2020) put in the place of attention, sub-layer by sub-layer."""

from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace
from typing import Any

from keras_attnvariants.models import highest
from keras_attnvariants.presets.layers import layer
from keras_attnvariants.presets.layers import learned

# Queries, keys and values of one attention layer are initialised as one stacked
# matrix of 3 d rows: Glorot's bound sqrt(6 / 4d), which is this scale on each part.
STACKED_GLOROT = {
    "class_name": "VarianceScaling",
    "config": {"scale": 0.5, "mode": "fan_avg", "distribution": "uniform"},
}

# Those of learned attention in the released code.
INITIALIZERS = {
    "kernel_initializer": STACKED_GLOROT,
    "output_initializer": "glorot_uniform",
}

LEFT, CENTRE, RIGHT = -1, 0, 1


@dataclass(frozen=True)
class Variant:
    """One row of the paper's tables, for any size.

    Attributes:
        self_attention: `"learned"`, `None` for no such sub-layer, or how the
            hard-coded one is computed: `"gaussian"`, `"conv"`, `"index"`.
        cross_attention: `"learned"`, `"gaussian"`, or `"last"`: learned in the last
            decoder layers and nothing before.
        last_layers: number of those layers.
        last_heads: number of heads in each, which are together as wide as the model.
        feed_forward: whether encoder and decoder have feed-forward sub-layers.
        outer_offsets: offsets in the lowest and the highest layer, of the encoder
            and of the decoder; those of all other layers are (left, right) and
            (left, centre).
    """

    self_attention: str | None = "learned"
    cross_attention: str = "learned"
    last_layers: int = 1
    last_heads: int = 1
    feed_forward: bool = True
    outer_offsets: tuple[Sequence[int], Sequence[int]] = (
        (LEFT, RIGHT),
        (LEFT, CENTRE),
    )

    def architecture(
        self, num_layers: int, num_heads: int, length_ratio: float = 1.0, **sizes: Any
    ) -> dict[str, Any]:
        """The arguments of `Transformer`, in the form of its `get_config`.

        Args:
            num_layers: number of encoder blocks, and of decoder blocks.
            num_heads: heads per attention layer, except those of `"last"`.
            length_ratio: of hard-coded cross-attention.
            **sizes: further arguments, handed on as they are.
        """
        outer_encoder, outer_decoder = self.outer_offsets
        return {
            **sizes,
            "num_layers": num_layers,
            "encoder_attention": self.stack(
                num_layers, num_heads, (LEFT, RIGHT), outer_encoder
            ),
            "decoder_attention": self.stack(
                num_layers, num_heads, (LEFT, CENTRE), outer_decoder
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
        """The self-attention of all layers: one description, or one per layer."""
        if self.self_attention is None:
            return None
        if self.self_attention == "learned":
            return learned(num_heads, **INITIALIZERS)
        usual, outer = (
            hard_coded(num_heads, pair, self.self_attention)
            for pair in (offsets, outer_offsets)
        )
        if usual == outer:
            return usual
        return [outer if i in (0, num_layers - 1) else usual for i in range(num_layers)]

    def cross(self, num_layers: int, num_heads: int, length_ratio: float) -> Any:
        """The cross-attention of all layers: one description, or one per layer."""
        if self.cross_attention == "learned":
            return learned(num_heads, **INITIALIZERS)
        if self.cross_attention == "last":
            heads = learned(self.last_heads, **INITIALIZERS)
            return highest(self.last_layers, heads, None, num_layers)
        # The paper lists left, centre and right; its released recipe has no centre.
        return layer(
            "HardCodedCrossAttention",
            num_heads=num_heads,
            offsets=[LEFT, RIGHT],
            length_ratio=length_ratio,
        )


def hard_coded(
    num_heads: int, offsets: Sequence[int], implementation: str
) -> dict[str, Any]:
    """Hard-coded self-attention, by default with the initial weights of the paper."""
    return layer(
        "HardCodedAttention",
        num_heads=num_heads,
        offsets=list(offsets),
        implementation=implementation,
    )


def without_feed_forward(variants: dict[str, Variant]) -> dict[str, Variant]:
    """The paper's `*/-ff`: the same variants, and names, with no feed-forward."""
    return {
        f"{name}-no-ff": replace(variant, feed_forward=False)
        for name, variant in variants.items()
    }


MAIN = {
    "base": Variant(),
    "hc-sa": Variant("gaussian"),
    "hc-all": Variant("gaussian", "gaussian"),
    "sh-x": Variant("gaussian", "last"),
}

VARIANTS = {
    **MAIN,
    "base-no-sa": Variant(None),
    "sh-x-no-sa": Variant(None, "last"),
    **without_feed_forward(MAIN),
    "conv": Variant("conv"),
    "index": Variant("index"),
}

# Table 6: encoder and decoder offsets of the outer layers; (lr | lc) is `hc-sa`.
OFFSETS = {
    f"hc-sa-{encoder}-{decoder}": Variant(
        "gaussian",
        outer_offsets=tuple(
            tuple({"l": LEFT, "c": CENTRE, "r": RIGHT}[letter] for letter in pair)
            for pair in (encoder, decoder)
        ),
    )
    for encoder, decoder in (("ll", "ll"), ("ll", "cc"), ("ll", "lc"))
}

# Figure 7: more heads in the last layer, or one head in more of the last layers.
CROSS_HEADS = {
    f"sh-x-{heads}-heads": replace(MAIN["sh-x"], last_heads=heads)
    for heads in (2, 3, 4)
} | {
    f"sh-x-{layers}-layers": replace(MAIN["sh-x"], last_layers=layers)
    for layers in (2, 3, 4, 5)
}
