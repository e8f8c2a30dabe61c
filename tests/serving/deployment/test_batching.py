"""How TensorFlow Serving merges requests."""

import pytest

from keras_attnvariants.serving.deployment.batching import BATCHING
from keras_attnvariants.serving.deployment.batching import batch_sizes
from keras_attnvariants.serving.deployment.batching import write_batching
from tests.serving.deployment.configs import BatchingParameters
from tests.serving.deployment.configs import read


@pytest.mark.parametrize("largest", [1, 2, 3, 7, 33, 48, 64, 100])
def test_sizes_grow_by_at_most_a_half_up_to_the_largest(largest):
    sizes = batch_sizes(largest)
    assert sizes[0] == 1 and sizes[-1] == largest
    for size, following in zip(sizes, sizes[1:], strict=False):
        # What is one sentence more than a size is filled up to the next.
        assert size < following <= max(size * 1.5, size + 1)


@pytest.mark.parametrize(("shape", "pads"), [([None], False), ([None, None], True)])
def test_the_server_reads_it(shape, pads, tmp_path):
    write_batching(
        tmp_path, 33, {"serving_default": {"inputs": {"x": {"shape": shape}}}}
    )
    parameters = read(BatchingParameters, tmp_path / BATCHING)
    assert parameters.max_batch_size.value == 33
    assert list(parameters.allowed_batch_sizes) == batch_sizes(33)
    assert parameters.pad_variable_length_inputs == pads
