"""Templates: one for all layers or a list, refusals, clones, configurations."""

import keras
import pytest

from keras_attnvariants import attention
from keras_attnvariants.attention import DotProductAttention
from keras_attnvariants.attention import NeuralNgram
from keras_attnvariants.models import templates
from tests.models import tiny


def test_one_entry_stands_for_all_layers():
    assert templates.per_layer("name", None, 3) == [None] * 3
    assert templates.per_layer("name", "a", 2) == ["a", "a"]
    assert templates.per_layer("name", ("a", None), 2) == ["a", None]


@pytest.mark.parametrize("entries", [[], ["a"], ["a"] * 3])
def test_a_list_of_another_length_is_refused(entries):
    message = f"`name`.*2 layers. Received: {len(entries)} entries"
    with pytest.raises(ValueError, match=message):
        templates.per_layer("name", entries, 2)


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
        templates.check_role(place, layer, role)
    message, alternatives = str(error.value).split(". Alternatives: ")
    assert message.startswith(f"{name} cannot serve as {role} attention (`{place}`)")
    assert f"can serve as {' or '.join(sorted(layer.roles))} attention" in message
    assert message.endswith(" it can") == (role in variant.roles)
    alternatives, received = alternatives.split(". Received: ")
    assert received == f"{place}={name}"
    assert set(attention.variants(role)) - {name} == {
        part.partition("(")[0] for part in alternatives.split(", ") if part[0].isupper()
    }


@pytest.mark.parametrize("causal", [False, True])
def test_a_layer_made_for_the_other_side_is_refused(causal):
    template = NeuralNgram(4, causal=causal)
    wrong, right = ("encoder", "decoder")[:: 1 if causal else -1]
    message = (
        rf"{wrong}_attention.*as {right} attention. With causal={not causal} it can\."
    )
    with pytest.raises(ValueError, match=message):
        templates.check_role(f"{wrong}_attention", template, wrong)
    templates.check_role(f"{right}_attention", template, right)


@pytest.mark.parametrize(
    "template", ["dot", 3, keras.layers.Dense(3), DotProductAttention]
)
def test_other_layers_than_attention_are_refused(template):
    with pytest.raises(TypeError, match="`encoder_attention`.*DotProduct.*Received: "):
        templates.check_role("encoder_attention", template, "encoder")


def test_a_clone_is_a_new_layer_of_the_same_configuration():
    template = tiny.learned(use_bias=True, key_dim=3)
    clone = templates.clone(template, "mixed_bfloat16", "here")
    assert clone is not template
    changed = {"name": "here", "dtype": clone.get_config()["dtype"]}
    assert clone.get_config() == {**template.get_config(), **changed}
    assert clone.compute_dtype == "bfloat16"
    assert templates.clone(None, "float32", "here") is None


def test_templates_survive_serialization():
    entries = [tiny.learned(), None, tiny.decoder()]
    again = templates.deserialize(templates.serialize(entries))
    assert [layer and layer.get_config() for layer in again] == [
        layer and layer.get_config() for layer in entries
    ]
    assert templates.deserialize("relu") == "relu"
    assert templates.serialize((True, False)) == [True, False]
