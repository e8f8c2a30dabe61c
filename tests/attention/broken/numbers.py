"""Layers that compute wrong numbers."""

from dataclasses import replace

from keras import ops

from keras_attnvariants.attention import DotProductAttention
from keras_attnvariants.attention import HardCodedAttention
from keras_attnvariants.attention import RecurrentCrossAttention
from tests.attention.broken.registry import broken


@broken("encoder", "values_match_reference", num_heads=4)
class WrongScale(DotProductAttention):
    """Energies are 10 % too large."""

    def build(self, *shapes):
        super().build(*shapes)
        self.scale *= 1.1


@broken("encoder", "values_match_reference", num_heads=4)
class RenormalisesBorders(HardCodedAttention):
    """Hard-coded weights are renormalised where a border cuts them off."""

    def attend(self, call):
        context, weights = super().attend(replace(call, return_scores=True))
        total = ops.maximum(ops.sum(weights, axis=-1), 1e-3)  # [B, H, T]
        rows = ops.transpose(total, (0, 2, 1))[..., None]
        return context / rows, weights / total[..., None]


@broken("encoder", "gradients_match_finite_differences", num_heads=4)
class BlocksGradients(DotProductAttention):
    """The gradient is not propagated to the values."""

    def project_inputs(self, call):
        q, k, v = super().project_inputs(call)
        return q, k, ops.stop_gradient(v)


@broken("encoder", "scores_never_change_the_output", num_heads=4)
class ScoresChangeOutput(DotProductAttention):
    """The output changes when scores are requested."""

    def attend(self, call):
        context, weights = super().attend(call)
        return context * (1.001 if call.return_scores else 1.0), weights


@broken("encoder", "values_match_reference", num_heads=4)
class ReturnsOneTensor(DotProductAttention):
    """`attend` returns the context alone."""

    def attend(self, call):
        return super().attend(call)[0]


@broken("encoder", "values_match_reference", num_heads=4)
class LosesWeights(DotProductAttention):
    """`attend` returns no weights even when they are requested."""

    def attend(self, call):
        return super().attend(call)[0], None


@broken("encoder", "values_match_reference", num_heads=4)
class CouplesSentences(DotProductAttention):
    """A sentence changes the outputs of the others in its batch."""

    def project_output(self, context, training=False):
        return super().project_output(context - ops.mean(context, axis=0) / 10)


@broken(
    "encoder",
    "a_call_is_linear_in_length",
    "gradients_are_linear_in_length",
    num_heads=4,
)
class SaysThatItIsLinear(DotProductAttention):
    """A matrix of all pairs is computed by a layer that is said to be linear."""

    is_linear = True


@broken(
    "encoder",
    "weights_are_computed_in_float32",
    dtype="mixed_bfloat16",
    num_heads=4,
)
class SoftmaxInHalfPrecision(DotProductAttention):
    """The softmax is computed in the dtype of the layer."""

    def average(self, energies, values, mask, training=False):
        if mask is not None:
            lowest = ops.cast(-1e9, energies.dtype)
            energies = ops.where(mask, energies, lowest)
        weights = ops.softmax(energies)
        if mask is not None:
            weights = ops.where(mask, weights, ops.zeros_like(weights))
        context = ops.einsum("bhts,bshd->bthd", weights, values)
        return context, ops.cast(weights, "float32")


@broken(
    "cross",
    "values_match_reference",
    "step_equals_call",
    num_heads=4,
    recurrence="subtracted_weights",
    key_dim=3,
    value_dim=5,
)
class ScalesByValueWidth(RecurrentCrossAttention):
    """Whole sequences divide the term of Eq. 10 by the root of the values' width."""

    def attend(self, call):
        given, ratio = self.recurrence, (self.head_key_dim / self.head_dim) ** 0.5
        self.recurrence = replace(given, rate=given.rate * ratio)
        found = super().attend(call)
        self.recurrence = given
        return found
