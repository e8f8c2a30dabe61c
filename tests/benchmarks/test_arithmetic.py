"""Multiply-adds of decoding steps: by hand, and by the weights of a model."""

import math
import re

import pytest

from keras_attnvariants import presets

SIZES = {
    "vocabulary_size": 100,
    "num_layers": 3,
    "hidden_dim": 8,
    "intermediate_dim": 20,
    "num_heads": 4,
}
LENGTH, STEPS = 7, 5

MATRIX = 8 * 8


@pytest.fixture
def count(benchmark):
    arithmetic = benchmark("arithmetic")

    def step(name):
        preset = presets.get(name)
        config = preset.architecture(**(preset.options | SIZES))
        return arithmetic.decoding_step(config, LENGTH, STEPS)

    return step


def test_learned_attention_by_hand(count):
    step = count("you2020/base/wmt16-en-ro")
    # Projections to query, key, value and output; of the source, to query and output.
    assert step.projections == 3 * (4 + 2) * MATRIX
    # On average 3 of 5 target tokens are seen, and all 7 of the source; each is
    # multiplied with a query and with a weight.
    assert step.products == 3 * (3 * 2 * 8 + 7 * 2 * 8)
    assert step.feed_forward == 3 * 2 * 8 * 20
    assert step.vocabulary == 8 * 100
    assert step.total == 1152 + 480 + 960 + 800


def test_hard_coded_attention_by_hand(count):
    base = count("you2020/base/wmt16-en-ro")
    step = count("you2020/hc-sa/wmt16-en-ro")
    assert step.projections == 3 * (2 + 2) * MATRIX
    assert (step.feed_forward, step.vocabulary) == (base.feed_forward, base.vocabulary)
    cross = 3 * 7 * 2 * 8
    taps, rest = divmod((step.products - cross) / 3, 8)
    assert rest == 0 and 2 < taps < 20


def test_cross_attention_in_the_last_layer_alone(count):
    variant = count("you2020/hc-sa/wmt16-en-ro")
    step = count("you2020/sh-x/wmt16-en-ro")
    assert variant.projections - step.projections == 2 * 2 * MATRIX
    assert variant.products - step.products == 2 * (7 * 2 * 8)


def test_phrases_by_hand(count):
    base = count("kav/base/multi30k")
    step = count("kav/interleaved-query-k/multi30k")
    # Queries of tokens and pairs for tokens and pairs: 1 + 2 + 2 + 4; keys: 1; values:
    # 1 + 2; outputs: 2. Those of the source are made before.
    assert step.projections == 3 * (15 + 11) * MATRIX
    # Two queries; keys of one and two tokens, and a value for each.
    assert step.products == 2.5 * 2 * base.products


@pytest.mark.parametrize(
    "name",
    [
        *(f"you2020/{variant}/wmt16-en-ro" for variant in ("base", "hc-sa", "sh-x")),
        *(f"kav/{v}-conv-kv/multi30k" for v in ("homogeneous", "interleaved")),
        "kav/neural-ngram/multi30k",
    ],
)
def test_every_weight_of_a_step_is_multiplied_once(count, name):
    model = presets.get(name).build(**SIZES)
    of_source = ("cross_attention/.*key", "cross_attention/.*value")
    kernels = sum(
        math.prod(weight.shape)
        for block in model.decoder_blocks
        for weight in block.weights
        if weight.path.endswith("kernel")
        and not any(re.search(part, weight.path) for part in of_source)
    )
    step = count(name)
    assert step.projections + step.feed_forward == kernels
    assert step.vocabulary == model.vocabulary_size * model.hidden_dim


def test_other_variants_are_not_guessed(count):
    with pytest.raises(TypeError, match="HardCodedCrossAttention"):
        count("you2020/hc-all/wmt16-en-ro")
