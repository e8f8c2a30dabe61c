"""Every alternative that a message names can really be used."""

import pytest

import keras_attnvariants as kav
from keras_attnvariants import attention
from keras_attnvariants.attention.registry import ROLES
from keras_attnvariants.models.templates import REMEDIES
from keras_attnvariants.models.templates import alternatives

EACH_ROLE = pytest.mark.parametrize("role", ROLES)

REFUSED = [
    (role, kav.NeuralNgram(4, n=3, causal=role == "encoder"))
    for role in ("encoder", "decoder")
] + [
    ("decoder", kav.NeuralNgram(4, global_context=True)),
    ("decoder", kav.ConcatenatedNgram(12)),
    ("encoder", kav.ConcatenatedNgram(12, causal=True)),
    ("decoder", kav.PhraseAttention(4, kav.Interleaved(look_ahead=True), key_dim=3)),
]


def layer(text):
    """The layer that an alternative names, with the arguments that it must have."""
    name, _, arguments = text.partition("(")
    arguments = arguments.removesuffix(")")
    required = {"ConcatenatedNgram": "hidden_dim=12"}.get(name, "num_heads=4")
    known = vars(attention)
    return eval(f"{name}({required}, {arguments})", dict(known))  # noqa: S307


@EACH_ROLE
def test_all_variants_of_a_role_are_named_and_fit(role):
    found = alternatives(role)
    names = [text.partition("(")[0] for text in found]
    assert names == sorted(attention.variants(role))
    for text in found:
        assert role in layer(text).roles, text


@pytest.mark.parametrize(
    ("role", "refused"), REFUSED, ids=[f"{type(x).__name__} as {r}" for r, x in REFUSED]
)
def test_the_refused_class_is_not_an_alternative_but_has_a_remedy(role, refused):
    assert role not in refused.roles
    name = type(refused).__name__
    assert not [text for text in alternatives(role, excluded=name) if name in text]
    assert role in layer(f"{name}({REMEDIES[name, role]})").roles


@pytest.mark.parametrize(("name", "role"), REMEDIES)
def test_remedies_help(name, role):
    assert role in layer(f"{name}({REMEDIES[name, role]})").roles


def test_only_arguments_that_decide_are_named():
    found = alternatives("decoder")
    assert "NeuralNgram(causal=True)" in found
    assert "ConcatenatedNgram(causal=True)" in found
    assert "LocalAttention" in found
