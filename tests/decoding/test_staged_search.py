"""Searches in several stages find the same as in one."""

import functools
import itertools

import numpy as np
import pytest
from keras import ops

import keras_attnvariants as kav
from keras_attnvariants import backend
from keras_attnvariants.attention.registry import variants
from keras_attnvariants.decoding import beam_search
from keras_attnvariants.decoding import staged_search as module
from keras_attnvariants.decoding.staged_search import IMPOSSIBLE
from keras_attnvariants.decoding.staged_search import is_possible
from keras_attnvariants.decoding.staged_search import stage_limits
from tests.decoding.toys import COMPILERS
from tests.decoding.toys import PAD
from tests.decoding.toys import RecurrentModel
from tests.decoding.toys import numpy
from tests.decoding.toys import random_sources
from tests.decoding.toys import search
from tests.selection import mostly_slow

SOURCES = np.array(
    [[4, 5, 6], [7, PAD, PAD], [8, 4, PAD], [PAD, PAD, PAD], [5, 5, 5]], "int32"
)
FIRST = SOURCES.shape[1] + module.MARGIN


@pytest.mark.parametrize(
    "source_length, max_length, expected",
    [
        (10, 100, (10 + module.MARGIN, 100)),
        (10, 10 + module.MARGIN + module.MIN_SECOND_STAGE - 1, (33,)),
        (10, 10 + module.MARGIN + module.MIN_SECOND_STAGE, (18, 34)),
        (30, 5, (5,)),
    ],
)
def test_a_second_stage_needs_enough_positions(source_length, max_length, expected):
    assert stage_limits(2, source_length, max_length) == expected
    assert stage_limits(None, source_length, max_length) == expected


def test_a_sentence_alone_has_one_stage():
    assert stage_limits(1, 10, 100) == (100,)


class CountingModel(RecurrentModel):
    """Records the number of sentences at every position."""

    def __init__(self, **options):
        super().__init__(**options)
        self.rows = {}

    def step(self, tokens, position, *arguments, **options):
        self.rows[int(position)] = tokens.shape[0]
        return super().step(tokens, position, *arguments, **options)


@pytest.mark.skipif(backend.name() != "tensorflow", reason="shapes are fixed on JAX")
@pytest.mark.parametrize("beam_size", [1, 3])
def test_sentences_leave_when_a_quarter_of_them_is_done(beam_size, monkeypatch):
    for name in ("STRIDE", "MARGIN"):  # room for all positions from the start
        monkeypatch.setattr(module, name, 1000)
    model = CountingModel(seed=3)
    sources = np.concatenate([SOURCES, random_sources(10, width=SOURCES.shape[1])])
    found = beam_search(model, sources, beam_size=beam_size)
    rows = [model.rows[position] for position in sorted(model.rows)]
    assert rows[0] == len(sources) and len(set(rows)) > 2
    for before, after in itertools.pairwise(rows):
        assert after == before or after <= before - before / module.DONE
    for position, count in model.rows.items():
        assert count >= (found.lengths.numpy()[:, 0] > position).sum()


def same(found, expected):
    for name in ("ids", "lengths"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    for name in ("scores", "log_probs", "alignments"):
        np.testing.assert_allclose(
            getattr(found, name), getattr(expected, name), rtol=1e-5, atol=1e-5
        )


@pytest.fixture(scope="module", params=[(1, 1), (3, 2)], ids=["greedy", "beam"])
def in_one_stage(request):
    """A model, options, sources, and the results of a search with one stage."""
    beam_size, n_best = request.param
    model = RecurrentModel(seed=3, eos_bias=-1.0)
    sources = np.concatenate([SOURCES, random_sources(10, width=SOURCES.shape[1])])
    options = {"beam_size": beam_size, "n_best": n_best, "return_alignments": True}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MIN_SECOND_STAGE", 1000)
        expected = search(model, sources, xla=True, **options)
    late = expected.lengths[:, 0] > FIRST
    assert late.any() and not late.all()
    return model, options, sources, expected


@pytest.mark.parametrize("xla", mostly_slow(COMPILERS, COMPILERS[:1]))
def test_stages_change_nothing(in_one_stage, xla):
    model, options, sources, expected = in_one_stage
    same(search(model, sources, xla=xla, **options), expected)


class TracedModel(RecurrentModel):
    """Counts how often its step is traced."""

    traced = 0

    def step(self, *arguments, **options):
        self.traced += 1
        return super().step(*arguments, **options)


@pytest.mark.skipif(backend.name() != "tensorflow", reason="shapes are fixed on JAX")
@pytest.mark.parametrize("stride", [2, 16])
@pytest.mark.parametrize("beam_size", [1, 3])
def test_one_loop_serves_sources_of_any_width(beam_size, stride, monkeypatch):
    import tensorflow as tf

    monkeypatch.setattr(module, "STRIDE", stride)
    model = TracedModel(seed=3, eos_bias=-1.0)
    options = {"beam_size": beam_size, "return_alignments": True}
    sources = np.concatenate([SOURCES, random_sources(10, width=SOURCES.shape[1])])
    run = tf.function(
        functools.partial(beam_search, model, **options),
        input_signature=[tf.TensorSpec([None, None], tf.int32)],
    )
    for padding in (0, 5):
        padded = np.pad(sources, ((0, 0), (0, padding)))
        found = numpy(run(padded))
        assert model.traced == 1
        same(found, search(RecurrentModel(seed=3, eos_bias=-1.0), padded, **options))
        is_late = found.lengths[:, 0] > padded.shape[1] + module.MARGIN
        assert is_late.any() and not is_late.all()


@pytest.mark.skipif(backend.name() != "tensorflow", reason="shapes are fixed on JAX")
def test_a_fixed_number_of_sentences_of_any_width():
    """Some sentences end before others, so that a loop continues with fewer."""
    import tensorflow as tf

    model = RecurrentModel(seed=3, eos_bias=-1.0)
    sources = np.concatenate([SOURCES, random_sources(10, width=SOURCES.shape[1])])
    options = {"beam_size": 3, "return_alignments": True}
    expected = search(model, sources, **options)
    width_unknown = tf.TensorSpec([len(sources), None], tf.int32)
    run = functools.partial(beam_search, model, **options)
    same(numpy(tf.function(run, [width_unknown])(sources)), expected)
    # TensorFlow forgets the width of its own accord when it meets another one.
    relaxed = backend.jit(run, xla=False)
    for padding in (1, 2, 0):
        found = relaxed(tf.constant(np.pad(sources, ((0, 0), (0, padding)))))
    same(numpy(found), expected)


@pytest.mark.skipif(backend.name() != "tensorflow", reason="JAX traces loops twice")
@pytest.mark.parametrize("xla", [False, True])
@pytest.mark.parametrize("beam_size", [1, 3])
def test_a_step_for_a_sentence_alone_is_compiled_once(beam_size, xla):
    model = TracedModel(seed=3, eos_bias=-1.0)
    options = {"beam_size": beam_size, "return_alignments": True, "xla": xla}
    alone = search(model, SOURCES[:1], **options)
    assert model.traced == 1
    both = search(model, SOURCES[:2], **options)
    assert model.traced == (3 if xla else 2)  # with XLA, one for each stage
    first = [None if values is None else values[:1] for values in both]
    same(type(both)(*first), alone)


@pytest.mark.skipif(backend.name() != "tensorflow", reason="shapes are fixed on JAX")
def test_there_is_room_for_little_more_than_the_positions_so_far(monkeypatch):
    import tensorflow as tf

    monkeypatch.setattr(module, "STRIDE", 4)
    rooms = []

    class RoomyModel(RecurrentModel):
        def initial_state(self, context, beams, max_length):
            tf.py_function(lambda room: rooms.append(int(room)), [max_length], [])
            return super().initial_state(context, beams, max_length)

    model = RoomyModel(seed=3, eos_bias=-1.0)
    run = tf.function(
        lambda sources: beam_search(model, sources, beam_size=3),
        input_signature=[tf.TensorSpec([None, None], tf.int32)],
    )
    longest = run(SOURCES).lengths.numpy().max()
    assert longest > FIRST
    # The stage before the second `FIRST` ended because sentences were done.
    assert rooms[:4] == [4, 8, FIRST, FIRST]
    [limit] = set(rooms[4:])
    assert limit >= longest


PLACES = [
    (role, name, number)
    for role in ("decoder", "cross")
    for name, variant in sorted(variants(role).items())
    for number in variant.fitting(role)[:1]
]


@pytest.mark.slow
@pytest.mark.parametrize("role, name, number", PLACES)
def test_every_state_grows(monkeypatch, role, name, number):
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
    found = search(model, SOURCES, **options)
    if backend.name() == "tensorflow":
        import tensorflow as tf

        spec = tf.TensorSpec([None, None], tf.int32)
        run = tf.function(functools.partial(beam_search, model, **options), [spec])
        same(numpy(run(SOURCES)), found)
        same(search(model, SOURCES, xla=True, **options), found)
    monkeypatch.setattr(module, "MIN_SECOND_STAGE", 1000)
    same(found, search(model, SOURCES, xla=True, **options))


def test_sums_and_products_with_the_impossible_stay_impossible():
    values = [IMPOSSIBLE, IMPOSSIBLE / 2, 0.01 * IMPOSSIBLE, IMPOSSIBLE + 1e5]
    assert not ops.convert_to_numpy(is_possible(ops.array(values))).any()
    real = ops.array([0.0, -1e5, -1e9])
    assert ops.convert_to_numpy(is_possible(real)).all()
