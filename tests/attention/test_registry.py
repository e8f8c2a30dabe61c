"""The registry of variants: look-up, roles, registration."""

import keras
import pytest

from keras_attnvariants import attention
from keras_attnvariants.attention import Heterogeneous
from keras_attnvariants.attention import Homogeneous
from keras_attnvariants.attention import Interleaved
from keras_attnvariants.attention import recurrences
from keras_attnvariants.attention import registry


@pytest.fixture
def clean_registry(monkeypatch):
    """Forgets afterwards all that a test registers, here and in Keras."""
    monkeypatch.setattr(registry, "_variants", dict(registry._variants))
    known = dict(keras.saving.get_custom_objects())
    yield
    keras.saving.get_custom_objects().clear()
    keras.saving.get_custom_objects().update(known)


def test_the_first_variants_are_registered():
    expected = {"DotProductAttention", "HardCodedAttention", "HardCodedCrossAttention"}
    assert expected <= set(attention.variants())


def test_entries_say_what_they_are():
    for name, variant in attention.variants().items():
        assert variant.cls.__name__ == name
        assert issubclass(variant.cls, attention.BaseAttention)
        assert variant.paper
        assert variant.examples
        assert variant.roles and variant.roles <= {"encoder", "decoder", "cross"}
        registered = keras.saving.get_registered_name(variant.cls)
        assert registered == f"keras_attnvariants>{name}"


def test_variants_of_a_role():
    assert "HardCodedAttention" not in attention.variants("cross")
    assert "HardCodedCrossAttention" in attention.variants("cross")
    assert "DotProductAttention" in attention.variants("encoder")


def test_every_example_fits_a_role_and_every_role_has_an_example():
    for variant in attention.variants().values():
        fitting = {role: variant.fitting(role) for role in registry.ROLES}
        assert {role for role, found in fitting.items() if found} == variant.roles
        assert set().union(*fitting.values()) == set(range(len(variant.examples)))


def test_unknown_role_is_refused():
    with pytest.raises(ValueError, match="encoder.*Received: 'middle'"):
        attention.variants("middle")


@pytest.mark.parametrize(
    "typo, meant",
    [
        ("DotProduct", "DotProductAttention"),
        ("HardcodedAttention", "HardCodedAttention"),
        ("hard_coded_cross_attention", "HardCodedCrossAttention"),
    ],
)
def test_unknown_name_gives_the_nearest(typo, meant):
    with pytest.raises(ValueError, match=f"{meant}.*Received: '{typo}'"):
        attention.get(typo)


def test_hopeless_name_lists_what_is_known():
    with pytest.raises(ValueError, match="HardCodedAttention.*Received: '12345'"):
        attention.get("12345")


def test_get_returns_the_entry():
    assert attention.get("DotProductAttention").cls is attention.DotProductAttention


def test_registering_adds_a_variant(clean_registry):
    @attention.register_attention(paper="Nobody 1999", examples=({"num_heads": 4},))
    class IdentityAttention(attention.BaseAttention):
        roles = frozenset({"encoder"})

    found = attention.get("IdentityAttention")
    assert found.cls is IdentityAttention
    assert found.roles == {"encoder"}
    assert "IdentityAttention" in attention.variants("encoder")
    assert "IdentityAttention" not in attention.variants("decoder")


@pytest.mark.parametrize("roles", [(), ("encoder", "middle")])
def test_registering_bad_roles_is_refused(clean_registry, roles):
    cls = type("Roleless", (attention.BaseAttention,), {"roles": frozenset(roles)})
    with pytest.raises(ValueError, match="roles.*Received"):
        attention.register_attention(paper="Nobody 1999", examples=())(cls)
    assert "Roleless" not in attention.variants()


def test_the_table_cannot_be_edited_from_outside():
    attention.variants().clear()
    assert attention.variants()


def kinds_with_two_widths(name, option):
    """The classes of an option in examples whose keys and values differ in width."""
    variant = registry.get(name)
    layers = [variant.cls(**example) for example in variant.examples]
    different = [layer for layer in layers if layer.key_dim != layer.value_dim]
    return {type(getattr(layer, option)) for layer in different}


def test_every_recurrence_and_structure_has_an_example_with_two_widths():
    known = set(recurrences.RECURRENCES.values())
    found = kinds_with_two_widths("RecurrentCrossAttention", "recurrence")
    assert found == known
    found = kinds_with_two_widths("PhraseAttention", "structure")
    assert found == {Heterogeneous, Homogeneous, Interleaved}
