"""The blocks of a model: one layer for each from a template or a list."""

import pytest

from keras_attnvariants.attention import HardCodedAttention
from keras_attnvariants.attention import NeuralNgram
from tests.models import tiny


def kinds(blocks, name):
    layers = [getattr(block, name) for block in blocks]
    return [layer and type(layer).__name__ for layer in layers]


def test_one_template_stands_for_every_block():
    template = tiny.learned(use_bias=True)
    model = tiny.make(cross_attention=template, num_decoder_layers=3)
    layers = [block.cross_attention for block in model.decoder_blocks]
    assert len({id(layer) for layer in [template, *layers]}) == 4
    assert all(layer.use_bias for layer in layers)
    assert not template.built


def test_a_list_has_one_entry_per_block():
    model = tiny.make(**tiny.FLAVOURS["another in every layer"])
    hard_coded, learned = "HardCodedAttention", "DotProductAttention"
    assert kinds(model.encoder_blocks, "self_attention") == [hard_coded, learned]
    assert kinds(model.decoder_blocks, "self_attention") == [None, hard_coded]
    assert kinds(model.decoder_blocks, "cross_attention") == [
        "HardCodedCrossAttention",
        learned,
    ]
    for blocks in (model.encoder_blocks, model.decoder_blocks):
        assert kinds(blocks, "feed_forward") == [None, "FeedForward"]


@pytest.mark.parametrize(
    ("name", "entries"),
    [
        ("encoder_attention", [tiny.learned()]),
        ("decoder_attention", [tiny.learned()] * 3),
        ("cross_attention", []),
        ("feed_forward", [True, False, True]),
    ],
)
def test_a_list_of_another_length_is_refused(name, entries):
    message = f"`{name}`.*2 layers. Received: {len(entries)} entries"
    with pytest.raises(ValueError, match=message):
        tiny.make(**{name: entries})


def test_n_can_grow_from_layer_to_layer():
    layers = [NeuralNgram(4, n=n, causal=True) for n in (3, 5)]
    blocks = tiny.make(decoder_attention=layers).decoder_blocks
    states = [block.initial_state(2, 3, 9, None)["self"] for block in blocks]
    assert [state["inputs"].shape for state in states] == [
        (2, 3, 2, tiny.WIDTH),
        (2, 3, 4, tiny.WIDTH),
    ]


def test_templates_keep_what_they_were_given():
    template = HardCodedAttention(2, offsets=(-2, 3), standard_deviation=0.5)
    block = tiny.make(encoder_attention=template).encoder_blocks[1]
    layer = block.self_attention
    assert layer.offsets == (-2, 3)
    assert layer.standard_deviation == 0.5
    assert (block.name, layer.name) == ("encoder_1", "self_attention")


def test_the_lowest_layers_of_a_model():
    stack = [tiny.encoder(), tiny.learned()]
    model = tiny.make(encoder_attention=stack)
    assert kinds(model.encoder_blocks, "self_attention") == [
        "HardCodedAttention",
        "DotProductAttention",
    ]
