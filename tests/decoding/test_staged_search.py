"""Searches in two stages find what they find in one."""

import numpy as np
import pytest
from keras import ops

import keras_attnvariants as kav
from keras_attnvariants import backend
from keras_attnvariants.attention.registry import variants
from keras_attnvariants.decoding import beam_search
from keras_attnvariants.decoding import staged_search as module
from keras_attnvariants.decoding.staged_search import stage_limits
from tests.decoding.toys import COMPILERS
from tests.decoding.toys import PAD
from tests.decoding.toys import RecurrentModel

SOURCES = np.array(
    [[4, 5, 6], [7, PAD, PAD], [8, 4, PAD], [PAD, PAD, PAD], [5, 5, 5]], "int32"
)
FIRST = SOURCES.shape[1] + module.MARGIN


@pytest.mark.parametrize(
    "source_length, max_length, expected",
    [
        (None, 100, (100,)),
        (10, 100, (10 + module.MARGIN, 100)),
        (10, 10 + module.MARGIN + module.MIN_SECOND_STAGE - 1, (33,)),
        (10, 10 + module.MARGIN + module.MIN_SECOND_STAGE, (18, 34)),
        (30, 5, (5,)),
    ],
)
def test_a_second_stage_has_to_be_worth_it(source_length, max_length, expected):
    assert stage_limits(source_length, max_length) == expected


class CountingModel(RecurrentModel):
    """Remembers how many sentences it was asked for at every position."""

    def __init__(self, **options):
        super().__init__(**options)
        self.rows = {}

    def step(self, tokens, position, *arguments, **options):
        self.rows[int(position)] = tokens.shape[0]
        return super().step(tokens, position, *arguments, **options)


@pytest.mark.skipif(backend.name() != "tensorflow", reason="shapes are fixed on JAX")
@pytest.mark.parametrize("beam_size", [1, 3])
def test_finished_sentences_leave(beam_size):
    model = CountingModel(seed=3)
    found = beam_search(model, SOURCES, beam_size=beam_size)
    late = int((np.asarray(found.lengths)[:, 0] > FIRST).sum())
    assert 0 < late < len(SOURCES), "sentences have to end in both stages"
    assert model.rows[FIRST - 1] == len(SOURCES)
    assert 0 < model.rows[FIRST] < len(SOURCES)


@pytest.fixture
def one_stage(monkeypatch):
    """Searches with all room from the start, when called."""

    def search(*arguments, **options):
        with monkeypatch.context() as patch:
            patch.setattr(module, "MIN_SECOND_STAGE", 1000)
            return beam_search(*arguments, **options)

    return search


def same(found, expected):
    for name in ("ids", "lengths"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    for name in ("scores", "log_probs", "alignments"):
        np.testing.assert_allclose(
            getattr(found, name), getattr(expected, name), rtol=1e-5, atol=1e-5
        )


@pytest.mark.parametrize("xla", COMPILERS)
@pytest.mark.parametrize("beam_size, n_best", [(1, 1), (3, 2)])
@pytest.mark.parametrize("seed", [0, 1, 3])
def test_stages_change_nothing(one_stage, seed, beam_size, n_best, xla):
    model = RecurrentModel(seed=seed, eos_bias=-1.0)
    options = {"beam_size": beam_size, "n_best": n_best, "return_alignments": True}
    expected = one_stage(model, SOURCES, **options)
    assert (np.asarray(expected.lengths) > FIRST).any()
    compiled = backend.jit(lambda ids: beam_search(model, ids, **options), xla=xla)
    same(compiled(ops.convert_to_tensor(SOURCES)), expected)


PLACES = [
    (role, name, number)
    for role in ("decoder", "cross")
    for name, variant in sorted(variants(role).items())
    for number in variant.fitting(role)[:1]
]


@pytest.mark.parametrize("role, name, number", PLACES)
def test_every_state_grows(one_stage, role, name, number):
    variant = variants(role)[name]
    places = dict.fromkeys(("decoder", "cross"), kav.DotProductAttention(num_heads=4))
    places[role] = variant.cls(**variant.examples[number])
    model = kav.Transformer(
        vocabulary_size=12,
        num_layers=1,
        hidden_dim=16,
        intermediate_dim=16,
        encoder_attention=None,
        decoder_attention=places["decoder"],
        cross_attention=places["cross"],
        max_length=64,
    )
    options = {"beam_size": 2, "return_alignments": True, "min_length": FIRST + 3}
    options["max_length"] = FIRST + module.MIN_SECOND_STAGE
    found = beam_search(model, SOURCES, **options)
    same(found, one_stage(model, SOURCES, **options))
