"""Blocks with few sub-layers, and the attributes of layers that blocks read."""

import numpy as np
import pytest
from keras import ops

from keras_attnvariants.attention import ConcatenatedNgram
from keras_attnvariants.models.blocks import DecoderBlock
from keras_attnvariants.models.blocks import EncoderBlock
from keras_attnvariants.models.blocks import apply_blocks
from keras_attnvariants.models.sublayers import FeedForward
from tests.models import tiny


def vectors(length=5, seed=0):
    values = np.random.default_rng(seed).normal(size=(2, length, tiny.WIDTH))
    return ops.convert_to_tensor(values.astype("float32"))


def decoder_block(self_attention=None, cross_attention=None, feed_forward=None):
    block = DecoderBlock(
        self_attention, feed_forward, "pre", 0.5, cross_attention, name="block"
    )
    block.build((None, None, tiny.WIDTH))
    tiny.randomize(block)
    return block


def test_a_block_without_sublayers_changes_nothing():
    x, encoded = vectors(), vectors(4, seed=1)
    block = decoder_block()
    np.testing.assert_array_equal(block(x, encoded, training=True), x)
    assert not block.weights
    assert block.prepare(encoded, None) == {}
    assert block.initial_state(2, 3, 9, {}) == {}
    output, state, alignment = block.step(x, 0, {}, {}, return_attention_scores=True)
    assert (output is x, state, alignment) == (True, {}, None)


def test_a_norm_that_nothing_reads_is_absent():
    block = decoder_block(tiny.decoder(), tiny.cross(), FeedForward(8, "relu", 0.0))
    assert block.cross_residual.normalization is None
    assert block.self_residual.normalization == "pre"
    assert block.feed_forward_residual.normalization == "pre"


def test_a_layer_that_drops_its_output_is_not_dropped_twice():
    ngram = ConcatenatedNgram(tiny.WIDTH, n=2, causal=True, far_windows=0, dropout=0.3)
    block = decoder_block(ngram, tiny.learned())
    assert block.self_residual.dropout.rate == 0.0
    assert block.cross_residual.dropout.rate == 0.5


@pytest.mark.parametrize("wanted", [False, True])
def test_scores_are_collected_by_block_and_role(wanted):
    x, encoded = vectors(), vectors(4, seed=1)
    blocks = [decoder_block(tiny.decoder(), tiny.learned()), decoder_block()]
    blocks[1].name = "other"
    scores = {"block": {}, "other": {}} if wanted else None
    output = apply_blocks(blocks, x, scores, encoded=encoded)
    tiny.near(output, blocks[0](x, encoded))
    if wanted:
        shapes = {role: tuple(w.shape) for role, w in scores["block"].items()}
        assert shapes == {"self": (2, 4, 5, 5), "cross": (2, 4, 5, 4)}
        assert scores["other"] == {}


def test_only_scores_that_are_asked_for_are_collected():
    blocks = [decoder_block(tiny.learned(), tiny.learned()) for _ in range(2)]
    blocks[1].name = "other"
    scores = {"other": {}}
    apply_blocks(blocks, vectors(), scores, encoded=vectors(4, seed=1))
    assert set(scores) == {"other"} and set(scores["other"]) == {"self", "cross"}


def test_a_decoder_block_is_causal_and_an_encoder_block_is_not():
    x, encoded = vectors(), vectors(4, seed=1)
    changed = ops.concatenate([x[:, :3], vectors(seed=2)[:, 3:]], axis=1)
    block = decoder_block(tiny.learned(), tiny.learned())
    tiny.near(block(changed, encoded)[:, :3], block(x, encoded)[:, :3])
    block = EncoderBlock(tiny.learned(), None, "post", 0.0)
    block.build(x.shape)
    change = tiny.to_numpy(block(changed)[:, :3] - block(x)[:, :3])
    assert np.abs(change).max() > 1e-3
    mask = ops.convert_to_tensor(np.arange(5) < np.array([[3], [3]]))
    found, expected = (block(inputs, source_mask=mask) for inputs in (changed, x))
    tiny.near(found[:, :3], expected[:, :3])
