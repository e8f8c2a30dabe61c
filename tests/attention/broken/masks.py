"""Layers that see what is masked, or mask what should be seen."""

from dataclasses import replace

from keras import ops

from keras_attnvariants.attention import DotProductAttention
from keras_attnvariants.attention import HardCodedAttention
from keras_attnvariants.attention import NeuralNgram
from tests.attention.broken.registry import broken


@broken(
    "encoder", "values_match_reference", "padding_content_is_invisible", num_heads=4
)
class SeesPadding(DotProductAttention):
    """The mask of the keys is ignored."""

    def attend(self, call):
        masks = call.masks._replace(key=None)
        return super().attend(replace(call, masks=masks))


@broken("encoder", "masked_rows_are_zero_with_finite_gradients", num_heads=4)
class MeanOfNothing(DotProductAttention):
    """A query that sees no key gets the mean of all values."""

    def average(self, energies, values, mask, training=False):
        if mask is not None:
            energies = ops.where(mask, energies, -1e9)
        return super().average(energies, values, None, training)


@broken(
    "encoder",
    "padding_content_is_invisible",
    "masked_rows_are_zero_with_finite_gradients",
    dtype="mixed_bfloat16",
    num_heads=4,
)
class MasksByAddition(DotProductAttention):
    """Padding lowers energies by a number that may be too small, in half precision."""

    def average(self, energies, values, mask, training=False):
        if mask is not None:
            energies = energies - 1e4 * ops.cast(ops.logical_not(mask), energies.dtype)
        return super().average(energies, values, None, training)


@broken("encoder", "implicit_masks_equal_explicit_masks", num_heads=4)
class LosesMask(DotProductAttention):
    """The mask of the query is not passed on."""

    def compute_mask(self, query, query_mask=None):
        return None


@broken("decoder", "causality", "step_equals_call", num_heads=4)
class IgnoresCausalMask(DotProductAttention):
    """`use_causal_mask` is ignored."""

    def attend(self, call):
        masks = call.masks._replace(causal=False)
        return super().attend(replace(call, masks=masks))


def with_next(context, chosen):
    """Contexts `[B, T, H, D]`; chosen positions add the context of the next one."""
    later = ops.pad(context[:, 1:], ((0, 0), (0, 1), (0, 0), (0, 0)))
    return context + ops.where(chosen[:, None, None], later, ops.zeros_like(later))


@broken("decoder", "causality_across_blocks", num_heads=4, offsets=(-1, 0))
class LooksOverBlocks(HardCodedAttention):
    """The last position of a block of 64 sees the first one of the next."""

    def attend(self, call):
        context, weights = super().attend(call)
        positions = ops.arange(ops.shape(context)[1])
        return with_next(context, ops.equal(positions % 64, 63)), weights


@broken("decoder", "causal_layers_need_no_causal_mask", num_heads=4, causal=True)
class CausalWhenTold(NeuralNgram):
    """A causal layer looks ahead unless it is given a causal mask."""

    def attend(self, call):
        context, weights = super().attend(call)
        if call.masks.causal:
            return context, weights
        return with_next(context, ops.ones(ops.shape(context)[1], "bool")), weights
