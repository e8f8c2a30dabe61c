"""Structures: their n-grams, and the roles that they can serve in."""

import numpy as np
import pytest
from keras import ops

from keras_attnvariants.attention import DotProductAttention
from keras_attnvariants.attention import Heterogeneous
from keras_attnvariants.attention import Homogeneous
from keras_attnvariants.attention import Interleaved
from keras_attnvariants.attention import Masks
from keras_attnvariants.attention import PhraseAttention
from keras_attnvariants.attention.phrases.structures import HeadGroup
from keras_attnvariants.models import Transformer
from tests.attention.conformance import to_numpy
from tests.attention.phrases.tools import BATCH
from tests.attention.phrases.tools import HEADS
from tests.attention.phrases.tools import HETEROGENEOUS
from tests.attention.phrases.tools import HOMOGENEOUS
from tests.attention.phrases.tools import INTERLEAVED
from tests.attention.phrases.tools import LENGTH
from tests.attention.phrases.tools import LOOKING_AHEAD
from tests.attention.phrases.tools import STRUCTURES
from tests.attention.phrases.tools import inputs
from tests.attention.phrases.tools import layer_of
from tests.attention.phrases.tools import scores_of


def test_border_ngrams_exist_in_the_homogeneous_structure_only():
    x = inputs()
    homogeneous = scores_of(layer_of(HOMOGENEOUS), x, x)
    assert (homogeneous > 0).all()
    heterogeneous = scores_of(layer_of(Heterogeneous((1, 2, 3))), x, x)[:, :, :, 0]
    for block, order in enumerate((1, 2, 3)):
        assert not heterogeneous[:, :, :, block, : order - 1].any()
        assert (heterogeneous[:, :, :, block, order - 1 :] > 0).all()


def test_structures_are_values():
    for structure in (*STRUCTURES, Homogeneous([0, 8]), Heterogeneous([2])):
        layer = PhraseAttention(HEADS, structure)
        twin = PhraseAttention.from_config(layer.get_config())
        assert twin.structure == structure
        assert hash(twin.structure) == hash(structure)
    assert len({PhraseAttention(HEADS, s).structure for s in STRUCTURES}) == 4


@pytest.mark.parametrize("options", [{"use_causal_mask": True}, {"attention_mask": 0}])
def test_looking_ahead_refuses_what_it_cannot_honour(options):
    x = inputs()
    if "attention_mask" in options:
        options = {"attention_mask": np.ones((BATCH, LENGTH, LENGTH), bool)}
    with pytest.raises(ValueError, match=f"look_ahead.*{next(iter(options))}"):
        layer_of(LOOKING_AHEAD)(x, x, **options)


def test_a_model_refuses_to_look_ahead_in_a_decoder():
    def model(**places):
        learned = DotProductAttention(2)
        names = ("encoder_attention", "decoder_attention", "cross_attention")
        return Transformer(20, 1, 16, 16, **{**dict.fromkeys(names, learned), **places})

    model(encoder_attention=PhraseAttention(2, LOOKING_AHEAD))
    model(cross_attention=PhraseAttention(2, INTERLEAVED))
    for place, structure in (
        ("decoder", LOOKING_AHEAD),
        ("cross", LOOKING_AHEAD),
        ("encoder", INTERLEAVED),
    ):
        places = {f"{place}_attention": PhraseAttention(2, structure)}
        hint = r"With structure=\w+\("
        with pytest.raises(ValueError, match=f"cannot serve as {place} .*{hint}"):
            model(**places)


def test_groups_of_heads():
    assert Homogeneous((3, 0, 1)).groups(4) == (
        HeadGroup("order_1", 3, (1,), with_missing=True),
        HeadGroup("order_3", 1, (3,), with_missing=True),
    )
    assert Heterogeneous((1, 3)).groups(4) == (HeadGroup("", 4, (1, 3)),)
    assert Interleaved().groups(4) == (HeadGroup("", 4, (1, 2)),)


@pytest.mark.parametrize("look_ahead", [False, True])
def test_outputs_are_made_of_phrases_and_tokens(look_ahead):
    """`b_t`, `u_t` and, looking ahead, `b_(t+1)`, which is 0 at the end."""
    tokens, phrases = np.array([1, 2, 3]), np.array([10, 20, 30])
    streams = np.concatenate([tokens, phrases]).reshape(1, 1, 6, 1)
    found = Interleaved(look_ahead).arrange(ops.convert_to_tensor(streams))
    parts = [phrases, tokens, [20, 30, 0]][: 3 if look_ahead else 2]
    assert to_numpy(found)[0, :, :, 0].T.tolist() == [list(part) for part in parts]


def test_phrases_ask_where_two_tokens_are_real():
    mask = np.array([[True, True, False]])
    for look_ahead, masks in ((False, Masks(query=mask)), (True, Masks(key=mask))):
        existing = Interleaved(look_ahead).existing_queries(masks, 3)
        assert to_numpy(existing[0]).tolist() == [[True] * 3]
        assert to_numpy(existing[1]).tolist() == [[False, True, False]]


def test_anything_but_a_structure_is_refused():
    assert PhraseAttention(4, HETEROGENEOUS).structure is HETEROGENEOUS
    with pytest.raises(TypeError, match="`structure` must be .*Received: 'homo"):
        PhraseAttention(4, "homogeneous")
