"""Embeddings and the output projection: tying, scale, bias."""

import numpy as np
import pytest
from keras import ops

from keras_attnvariants.models import ConcatenatedPositions
from tests.models import tiny

TABLE = tiny.VOCABULARY * tiny.WIDTH


@pytest.mark.parametrize(("tying", "tables"), [("all", 1), ("decoder", 2), ("none", 3)])
@pytest.mark.parametrize("bias", [False, True])
def test_tying_decides_how_many_tables_there_are(tying, tables, bias):
    model = tiny.make(
        **tiny.places(), feed_forward=False, tie_embeddings=tying, softmax_bias=bias
    )
    final_norms = 4 * tiny.WIDTH
    expected = tables * TABLE + bias * tiny.VOCABULARY + final_norms
    assert model.count_params() == expected


def test_concatenated_positions_need_an_output_of_its_own():
    for tying in ("all", "decoder"):
        with pytest.raises(ValueError, match=f"none.*Received: .*'{tying}'"):
            tiny.make(positions=ConcatenatedPositions(4), tie_embeddings=tying)


@pytest.mark.parametrize(("tying", "source"), [("decoder", 31), ("none", 12)])
def test_source_and_target_may_have_vocabularies_of_their_own(tying, source):
    model = tiny.make(source_vocabulary_size=source, tie_embeddings=tying)
    embeddings = model.embeddings
    assert embeddings.source.input_dim == model.source_vocabulary_size == source
    assert embeddings.target.input_dim == model.vocabulary_size == tiny.VOCABULARY
    joint = tiny.make(tie_embeddings=tying)
    assert joint.source_vocabulary_size == tiny.VOCABULARY
    difference = model.count_params() - joint.count_params()
    assert difference == (source - tiny.VOCABULARY) * tiny.WIDTH


def test_two_vocabularies_cannot_share_their_embeddings():
    with pytest.raises(ValueError, match="different sizes.*Received: .*'all'"):
        tiny.make(source_vocabulary_size=31)


def test_positions_must_leave_room_for_embeddings():
    positions = ConcatenatedPositions(tiny.WIDTH)
    with pytest.raises(ValueError, match="larger than.*16.*Received: hidden_dim=16"):
        tiny.make(positions=positions, tie_embeddings="none")


def test_initial_embeddings_have_unit_norm_so_that_scaled_ones_have_unit_variance():
    model = tiny.make(
        **tiny.places(), vocabulary_size=500, hidden_dim=64, feed_forward=False
    )
    ids = ops.arange(400)[None] % 16 + 4
    x = ops.reshape(model.embeddings.target(ids), (-1, 64))
    assert float(ops.std(x)) == pytest.approx(1 / 8, rel=0.1)


def test_one_step_is_one_column_of_a_sentence():
    embeddings = tiny.built("base, post").embeddings
    ids = np.array([[4, 5, 6], [7, 8, 9]], "int32")
    whole = embeddings.embed_target(ops.convert_to_tensor(ids))
    step = embeddings.embed_step(
        ops.convert_to_tensor(np.stack([ids[:, 2], ids[:, 1]], 1)),
        ops.convert_to_tensor(2, "int32"),
    )
    assert tuple(step.shape) == (2, 2, tiny.WIDTH)
    tiny.near(tiny.to_numpy(step)[:, 0], tiny.to_numpy(whole)[:, 2], 1e-6)
