"""One layer per block: templates, lists of them, and what is refused."""

import keras
import pytest

from keras_attnvariants import attention
from keras_attnvariants.attention import DotProductAttention
from keras_attnvariants.attention import HardCodedAttention
from keras_attnvariants.attention import NeuralNgram
from keras_attnvariants.models import highest
from keras_attnvariants.models import lowest
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


MISPLACED = [
    pytest.param(name, role, example, id=f"{name}-{example}-{role}")
    for name, variant in attention.variants().items()
    for role in attention.registry.ROLES
    for example in range(len(variant.examples))
    if example not in variant.fitting(role)
]


@pytest.mark.parametrize(("name", "role", "example"), MISPLACED)
def test_a_variant_in_the_wrong_place_is_refused(name, role, example):
    variant, place = attention.get(name), f"{role}_attention"
    layer = variant.cls(**variant.examples[example])
    with pytest.raises(ValueError) as error:
        tiny.make(**{**tiny.places(), place: [None, layer]})
    message, alternatives = str(error.value).split(". Alternatives: ")
    assert message.startswith(f"{name} cannot serve as {role} attention (`{place}`)")
    assert ("(see its `" in message) == (role in variant.roles)
    fitting = ", ".join(sorted(attention.variants(role)))
    assert alternatives == f"{fitting}. Received: {place}={name}"


@pytest.mark.parametrize("causal", [False, True])
def test_a_layer_made_for_the_other_side_is_refused(causal):
    template = NeuralNgram(4, causal=causal)
    wrong, right = ("encoder", "decoder")[:: 1 if causal else -1]
    message = rf"{wrong}_attention.*{right} \(see its `causal`\)"
    with pytest.raises(ValueError, match=message):
        tiny.make(**{f"{wrong}_attention": template})
    tiny.make(**{f"{right}_attention": template})


def test_n_can_grow_from_layer_to_layer():
    layers = [NeuralNgram(4, n=n, causal=True) for n in (3, 5)]
    blocks = tiny.make(decoder_attention=layers).decoder_blocks
    states = [block.initial_state(2, 3, 9, None)["self"] for block in blocks]
    assert [state["inputs"].shape for state in states] == [
        (2, 3, 2, tiny.WIDTH),
        (2, 3, 4, tiny.WIDTH),
    ]


@pytest.mark.parametrize(
    "template", ["dot", 3, keras.layers.Dense(3), DotProductAttention]
)
def test_what_is_no_attention_layer_is_refused(template):
    with pytest.raises(TypeError, match="`encoder_attention`.*DotProduct.*Received: "):
        tiny.make(encoder_attention=template)


def test_templates_keep_what_they_were_given():
    template = HardCodedAttention(2, offsets=(-2, 3), standard_deviation=0.5)
    block = tiny.make(encoder_attention=template).encoder_blocks[1]
    layer = block.self_attention
    assert layer.offsets == (-2, 3)
    assert layer.standard_deviation == 0.5
    assert (block.name, layer.name) == ("encoder_1", "self_attention")


def test_lowest_and_highest_layers():
    assert lowest(2, "a", rest="b", num_layers=3) == ["a", "a", "b"]
    assert highest(2, "a", rest="b", num_layers=3) == ["b", "a", "a"]
    for stack in (lowest, highest):
        assert stack(0, "a", rest="b", num_layers=2) == ["b", "b"]
        assert stack(2, "a", rest="b", num_layers=2) == ["a", "a"]
        for count in (-1, 3):
            with pytest.raises(ValueError, match=f"`count`.*2. Received: {count}"):
                stack(count, "a", rest="b", num_layers=2)


def test_the_lowest_layers_of_a_model():
    stack = lowest(1, tiny.encoder(), rest=tiny.learned(), num_layers=2)
    model = tiny.make(encoder_attention=stack)
    assert kinds(model.encoder_blocks, "self_attention") == [
        "HardCodedAttention",
        "DotProductAttention",
    ]
