"""Shared by the conformance tests: cases, layers and inputs.

A case is one registered example in one role and dtype. The fast tests have the first
example of every variant in each role, in float32; all others are marked as slow.
"""

import functools
from dataclasses import dataclass
from dataclasses import replace

import keras
import numpy as np
import pytest
from keras import ops

from keras_attnvariants import attention
from keras_attnvariants import backend
from tests import reference

BATCH = 3
LENGTH = 5
SOURCE_LENGTH = 7
WIDTH = 16
HEADS = 4
DTYPES = ("float32", "mixed_bfloat16", "mixed_float16")
# Half precision rounds inputs, weights and every intermediate result.
TOLERANCES = {"float32": 1e-5, "mixed_bfloat16": 2e-2, "mixed_float16": 2e-2}
# Where products of bfloat16 round their partial sums as well, a product of 16 terms is
# four times as far off, one of 256 five times; that can change the sign at a ReLU.
TOLERANCE_OF_ROUNDED_SUMS = 5e-2


@dataclass(frozen=True)
class Case:
    """One registered example, in one role and one dtype policy."""

    variant: str
    role: str
    example: int
    dtype: str = "float32"

    def __str__(self):
        return f"{self.variant}-{self.example}-{self.role}-{self.dtype}"

    @property
    def has_scores(self):
        return attention.variants()[self.variant].cls.has_scores

    @property
    def causal(self):
        return self.role == "decoder"

    @property
    def source_length(self):
        return SOURCE_LENGTH if self.role == "cross" else LENGTH

    @property
    def score_length(self):
        """Length of the last axis of the scores."""
        return self.source_length * self.score_blocks

    @property
    def score_blocks(self):
        """The number of times that the last axis of the scores lists the keys."""
        return built(self).compute_scores_shape((1, 1, WIDTH), (1, 1, WIDTH))[-1]

    @property
    def is_causal_by_itself(self):
        """Whether the layer is causal without `use_causal_mask`."""
        return bool(getattr(self.layer(), "causal", False))

    @property
    def tolerance(self):
        if self.dtype == "mixed_bfloat16" and not backend.sums_bfloat16_in_float32():
            return TOLERANCE_OF_ROUNDED_SUMS
        return TOLERANCES[self.dtype]

    @property
    def arguments(self):
        return dict(attention.variants()[self.variant].examples[self.example])

    def layer(self, **overrides):
        """A new layer, not built."""
        cls = attention.variants()[self.variant].cls
        return cls(**{"dtype": self.dtype, **self.arguments, **overrides})

    def call(self, layer, query, value, **kwargs):
        """The layer's `call` as this role uses it."""
        value = value if self.role == "cross" else query
        return layer(query, value, **{"use_causal_mask": self.causal, **kwargs})

    def call_with_scores(self, layer, query, value, **kwargs):
        """Output and scores; the scores of a layer without weights have no heads."""
        if self.has_scores:
            kwargs["return_attention_scores"] = True
            return self.call(layer, query, value, **kwargs)
        batch, length = ops.shape(query)[:2]
        none = ops.zeros((batch, 0, length, length))
        return self.call(layer, query, value, **kwargs), none

    @property
    def scores_shape(self):
        """The shape of the scores of the usual inputs."""
        heads = HEADS if self.has_scores else 0
        return (BATCH, heads, LENGTH, self.score_length)

    def need_scores(self):
        """Skips a test of attention weights if the layer has none."""
        if not self.has_scores:
            pytest.skip("has no attention weights")

    def forward(self, layer, query, value, **kwargs):
        """The same as `call`, on arrays; compiled where eager execution is slow."""
        value = value if self.role == "cross" else query
        kwargs = {"use_causal_mask": self.causal, **kwargs}
        return forward(layer, query, value, **kwargs)

    def expected(self, layer, query, value, **kwargs):
        """The reference's `(output, scores)` for this layer's weights."""
        return self.reference(
            layer.get_config(), reference.layer_weights(layer), query, value, **kwargs
        )

    def reference(self, config, weights, query, value, **kwargs):
        compute = reference.REFERENCES[self.variant]
        value = value if self.role == "cross" else query
        return compute(config, weights, query, value, causal=self.causal, **kwargs)


def cases(
    *dtypes,
    roles=attention.registry.ROLES,
    causal_layers=False,
    one_in_half=False,
    one_on_jax=False,
):
    """Every registered example in every role it declares, as pytest parameters.

    The scope makes pytest run the tests of a case next to each other.

    Args:
        *dtypes: the dtype policies; all of them if none is given.
        roles: the roles.
        causal_layers: whether only layers that are causal by themselves are meant.
        one_in_half: whether one example of each variant and role is enough in half
            precision, where the dtype policy alone makes a difference.
        one_on_jax: whether one is enough on JAX, which compiles eager operations one
            by one; for tests of code that knows no backend.
    """
    one_of_each = one_on_jax and backend.name() == "jax"
    found = [
        pytest.param(case, id=str(case), marks=speed(case))
        for case in all_cases(dtypes, roles)
        if not causal_layers or case.is_causal_by_itself
        if not one_in_half or case.dtype == "float32" or is_first(case)
        if not one_of_each or is_first(case)
    ]
    return pytest.mark.parametrize("case", found, scope="module")


def all_cases(dtypes=(), roles=attention.registry.ROLES):
    """Every registered example in every role it declares."""
    return [
        Case(name, role, example, dtype)
        for name in sorted(attention.variants())
        for role in roles
        for example in all_examples(name, role)
        for dtype in dtypes or DTYPES
    ]


@functools.cache
def all_examples(name, role):
    """The numbers of the registered examples that fit a role."""
    return attention.variants()[name].fitting(role)


def speed(case, mode="xla"):
    """The mark of a slow test, unless the case is a representative one.

    JAX compiles even a single eager operation, anew for each shape and dtype.
    """
    eager_on_jax = mode == "eager" and backend.name() == "jax"
    is_fast = case.dtype == "float32" and is_first(case) and not eager_on_jax
    return () if is_fast else pytest.mark.slow


def is_first(case):
    """Whether no earlier example fits the role."""
    return case.example == all_examples(case.variant, case.role)[0]


def cases_and_modes(*dtypes, roles=attention.registry.ROLES):
    """The cases, each of them eager and compiled, as far as `tells_more` says."""
    found = [
        pytest.param(case, mode, id=f"{case}-{mode}", marks=speed(case, mode))
        for case in all_cases(dtypes, roles)
        for mode in ("eager", "xla")
        if tells_more(case, mode)
    ]
    return pytest.mark.parametrize("case, mode", found, scope="module")


def tells_more(case, mode):
    """Whether a case in this mode can reveal something that no other case does.

    Every example is compiled in float32, and casts are those of its eager run: one
    compiled example in half precision is enough. JAX compiles eager operations too.
    """
    if mode == "xla":
        return case.dtype == "float32" or is_first(case)
    return backend.name() != "jax" or (case.dtype == "float32" and is_first(case))


def forward(layer, *arrays, **kwargs):
    """Calls a built layer on (nested) arrays; as one compiled program on JAX."""
    tensors = keras.tree.map_structure(ops.convert_to_tensor, arrays)
    if backend.name() == "jax":
        return backend.jit(lambda *inner: layer(*inner, **kwargs))(*tensors)
    return layer(*tensors, **kwargs)


@functools.cache
def built(case):
    """The case's layer with random weights and biases; tests must not change it."""
    layer = case.layer()
    layer.build((None, None, WIDTH), (None, None, WIDTH))
    randomize(layer)
    return layer


def randomize(layer, seed=7):
    """Random weights of the usual size, biases included."""
    rng = np.random.default_rng(seed)
    for weight in layer.weights:
        weight.assign(rng.normal(size=weight.shape, scale=WIDTH**-0.5))


def inputs(case, seed=0, length=LENGTH, source_length=None):
    """Float32 query and value, and their masks: full, padded, and short rows."""
    rng = np.random.default_rng(seed)
    source_length = source_length or (
        case.source_length if case.role == "cross" else length
    )
    query = normal(rng, BATCH, length, WIDTH)
    value = normal(rng, BATCH, source_length, WIDTH)
    query_mask = lengths_mask([length, max(length - 2, 1), 1], length)
    value_mask = lengths_mask(
        [source_length, max(source_length - 2, 1), 1], source_length
    )
    return query, value, query_mask, value_mask


def normal(rng, *shape):
    return rng.normal(size=shape).astype("float32")


def lengths_mask(lengths, size):
    return np.arange(size)[None] < np.array(lengths)[:, None]


def to_numpy(tensor) -> np.ndarray:
    return np.array(ops.convert_to_numpy(tensor))


def need_float32(case, weights):
    """Asserts that weights were not computed in half precision and cast afterwards."""
    half = case.layer().compute_dtype
    if half == "float32" or not has_finer(to_numpy(expected_weights(case)), half):
        return
    assert has_finer(weights, half), f"all weights are {half} numbers"


def expected_weights(case):
    """Weights of the same example in float32."""
    layer = built(replace(case, dtype="float32"))
    query, value = inputs(case)[:2]
    return case.call_with_scores(layer, query, value)[1]


def has_finer(weights, dtype):
    """Whether some float32 numbers are not representable in a narrower dtype."""
    rounded = to_numpy(ops.cast(ops.cast(weights, dtype), "float32"))
    return bool((rounded != weights).any())


def near(actual, expected, tolerance):
    """Asserts equality up to `tolerance`, relative to the largest entry above 1."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape
    scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance * scale)
