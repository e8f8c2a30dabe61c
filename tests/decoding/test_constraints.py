"""Arguments of a search that are invalid, and those that are just valid."""

import numpy as np
import pytest
from keras import ops

from keras_attnvariants import backend
from keras_attnvariants.decoding import beam_search
from keras_attnvariants.decoding.constraints import Constraints
from keras_attnvariants.decoding.constraints import padded_prefix
from tests.decoding.toys import EOS
from tests.decoding.toys import PAD
from tests.decoding.toys import RecurrentModel
from tests.decoding.toys import greedy_search

SOURCES = np.array([[4, 5, 6], [7, 0, 0]], "int32")


@pytest.fixture(scope="module")
def model():
    return RecurrentModel(max_length=60)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beam_size": 0}, "`beam_size` .* Received: 0"),
        ({"beam_size": 2.0}, "`beam_size` .* Received: 2.0"),
        ({"beam_size": True}, "`beam_size` .* Received: True"),
        ({"n_best": 0}, "`n_best` .* Received: 0"),
        ({"n_best": 1.5}, "`n_best` .* Received: 1.5"),
        ({"length_penalty": float("nan")}, "`length_penalty` .* Received: nan"),
        ({"length_penalty": "0.6"}, "`length_penalty` .* Received: '0.6'"),
        ({"min_length": -1}, "`min_length` .* Received: -1"),
        ({"min_length": 60}, "`min_length` .* Received: 60"),
        ({"min_length": 5, "max_length": 5}, "`min_length` .* Received: 5"),
        ({"max_length": 0}, "`max_length` .* Received: 0"),
        ({"max_length": 61}, "`max_length` .* Received: 61"),
        ({"prefix": [[4, 5]]}, r"`prefix` .* Received: prefix of shape \(1, 2\)"),
        ({"prefix": [4, 5]}, r"`prefix` .* Received: shape \(2,\)"),
        ({"prefix": [[0.5], [1.5]]}, "`prefix` .* Received: .*float32"),
        (
            {"prefix": [[4, 5], [6, 7]], "max_length": 2},
            "`prefix` .* Received: 2 columns",
        ),
    ],
)
def test_wrong_arguments_are_named(model, options, message):
    with pytest.raises(ValueError, match=message):
        beam_search(model, SOURCES, **options)
    if not {"beam_size", "n_best"} & set(options):
        with pytest.raises(ValueError, match=message):
            greedy_search(model, SOURCES, **options)


@pytest.mark.parametrize("sources", [SOURCES[0], SOURCES.astype("float32")])
def test_wrong_sources_are_named(model, sources):
    with pytest.raises(ValueError, match="`source_ids` .* Received: shape"):
        beam_search(model, sources)


def test_limits_come_from_the_tokens_not_from_the_padding(model):
    constraints = Constraints(model, SOURCES)
    assert constraints.max_length == 53
    assert ops.convert_to_numpy(constraints.limits).tolist() == [53, 51]
    wide = Constraints(model, np.pad(SOURCES, ((0, 0), (0, 20))))
    assert wide.max_length == 60
    assert ops.convert_to_numpy(wide.limits).tolist() == [53, 51]


def test_limits_leave_room_for_prefix_and_minimum_length(model):
    prefix = np.full((2, 57), 4, "int32")
    prefix[1, 55:] = PAD
    constraints = Constraints(model, SOURCES, prefix=prefix)
    assert ops.convert_to_numpy(constraints.limits).tolist() == [58, 56]
    constraints = Constraints(model, SOURCES, min_length=52)
    assert ops.convert_to_numpy(constraints.limits).tolist() == [53, 53]
    constraints = Constraints(model, SOURCES, max_length=7)
    assert ops.convert_to_numpy(constraints.limits).tolist() == [7, 7]


def test_minimum_lengths_in_a_tensor_fit_one_maximum_length(model):
    least = ops.convert_to_tensor(np.array([2, 1], "int32"))
    constraints = Constraints(model, SOURCES, min_length=least, max_length=7)
    assert constraints.max_length == 7
    assert ops.convert_to_numpy(constraints.limits).tolist() == [7, 7]


def test_allowed_tokens(model):
    prefix = np.array([[5, 6], [PAD, PAD]], "int32")
    constraints = Constraints(
        model, SOURCES, min_length=2, max_length=4, prefix=prefix, block_unknown=True
    )

    tokens = ops.arange(9, dtype="int32")

    def allowed(position):
        position = ops.convert_to_tensor(position, "int32")
        free = ops.convert_to_numpy(constraints.are_allowed(tokens, position))
        forced = ops.convert_to_numpy(constraints.forced_tokens(position))
        return [
            np.flatnonzero(free).tolist() if token == PAD else [token]
            for token in forced
        ]

    others = [4, 5, 6, 7, 8]
    assert allowed(0) == [[5], others]
    assert allowed(1) == [[6], others]
    assert allowed(2) == [[EOS, *others]] * 2
    assert allowed(3) == [[EOS]] * 2
    assert constraints.max_forbidden == 9 - len(others)


@pytest.mark.skipif(backend.name() != "tensorflow", reason="shapes are always known")
def test_no_prefix_has_a_known_width_where_sources_have_none():
    import tensorflow as tf

    widths = []

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32)])
    def prefix(source_ids):
        found = padded_prefix(None, source_ids, PAD)
        widths.append(found.shape[1])
        return found

    np.testing.assert_array_equal(prefix(SOURCES), [[PAD], [PAD]])
    assert widths == [1]
