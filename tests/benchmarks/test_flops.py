"""Operations of an update, against those of XLA's own count."""

import keras
import numpy as np
import pytest

from tests.models import tiny


@pytest.fixture
def flops(benchmark):
    return benchmark("flops")


def test_operations_are_those_of_the_products(flops):
    """By hand: one layer on each side."""
    model = tiny.make(num_layers=1)
    width, hidden, words = tiny.WIDTH, tiny.HIDDEN, tiny.VOCABULARY
    source, target = 7, 9
    square, feed = 2 * width * width, 4 * width * hidden
    encoder = source * (4 * square + feed) + 4 * width * source**2
    decoder = target * (6 * square + feed) + source * 2 * square
    decoder += 4 * width * target * (target + source)
    logits = 2 * target * width * words
    expected = 3 * 5 * (encoder + decoder + logits)
    assert flops.update_flops(model, 5, source, target) == expected


def test_gradients_have_the_size_of_the_weights(flops):
    model = tiny.make()
    count = sum(np.prod(weight.shape) for weight in model.trainable_weights)
    assert flops.gradient_bytes(model) == 4 * count
    assert keras.backend.floatx() == "float32"
