"""Searches among the likely tokens of each sentence."""

import dataclasses
import json

import numpy as np
import pytest
import tensorflow as tf

from keras_attnvariants.data import Shortlist
from keras_attnvariants.decoding import Ensemble
from keras_attnvariants.serving import export
from keras_attnvariants.serving import verify
from keras_attnvariants.serving.folders import INFO
from keras_attnvariants.serving.options import Options
from keras_attnvariants.serving.searches import BucketedSearch
from keras_attnvariants.serving.shortlisted import ShortlistedSteps
from tests.selection import mostly_slow
from tests.serving.test_exported import ROWS
from tests.serving.test_exported import served
from tests.serving.tools import LIMITS
from tests.serving.tools import VOCABULARY_SIZE
from tests.serving.tools import as_batch
from tests.serving.tools import sharp_model

OPTIONS = Options(4, 0.6, 2, 64, 4096, 30)
LENGTHS = tf.constant([len(row) for row in ROWS])


def found_by(steps, options=OPTIONS, n_best=2):
    """The best translations of `ROWS`."""
    search = BucketedSearch(steps, options, n_best, of_tokens=True)
    return search(tf.constant(as_batch(ROWS)), LENGTHS)


def shortlist_of(*proposals: dict[int, list[int]], common=()) -> Shortlist:
    by_source = np.full((VOCABULARY_SIZE, 3), -1, "int32")
    for proposal in proposals:
        for source, targets in proposal.items():
            by_source[source, : len(targets)] = targets
    return Shortlist(np.array(common, "int32"), by_source)


@pytest.mark.parametrize("variant", mostly_slow(["hc-sa", "lstm"], ["hc-sa"]))
def test_a_list_of_all_tokens_changes_nothing(variant):
    model = sharp_model(variant)
    expected = found_by(model)
    found = found_by(ShortlistedSteps(model, shortlist_of(), VOCABULARY_SIZE))
    for name in ("ids", "lengths"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    for name in ("scores", "token_log_probs", "alignments"):
        np.testing.assert_allclose(
            getattr(found, name), getattr(expected, name), rtol=1e-4, atol=1e-4
        )


def test_a_list_has_what_the_tokens_of_its_source_propose():
    shortlist = shortlist_of(
        {5: [50, 51, 52], 6: [60, 61], 7: [50, 70]}, common=[90, 91]
    )
    steps = ShortlistedSteps(sharp_model("hc-sa"), shortlist, 10)
    lists = steps.tokens(tf.constant([[5, 6, 0], [7, 0, 0]])).numpy().tolist()
    assert lists[0][:4] == lists[1][:4] == [0, 1, 2, 3]
    assert {50, 51, 60, 61, 90, 91} == set(lists[0][4:])  # the best of each first
    assert {50, 70, 90, 91} < set(lists[1]) and not {51, 60} & set(lists[1])
    alone = steps.tokens(tf.constant([[7]])).numpy().tolist()
    assert alone[0] == lists[1] == sorted(lists[1])


def test_translations_are_among_the_list_and_do_not_depend_on_neighbours():
    model = sharp_model("hc-sa")
    best = found_by(model).ids.numpy()
    rng = np.random.default_rng(0)
    proposals = {s: rng.integers(4, 100, 3).tolist() for s in range(4, 13)}
    steps = ShortlistedSteps(model, shortlist_of(proposals), 12)
    found = found_by(steps).ids.numpy()
    assert (found != best[:, :, : found.shape[2]]).any()
    lists = steps.tokens(tf.constant(as_batch(ROWS))).numpy()
    for row, tokens in zip(found, lists, strict=True):
        assert set(row.ravel()) <= set(tokens)
    search = BucketedSearch(steps, OPTIONS, n_best=2)
    for row, own in zip(ROWS[:3], found, strict=False):
        alone = search(tf.constant([row]), tf.constant([len(row)])).ids.numpy()[0]
        np.testing.assert_array_equal(alone, own[:, : alone.shape[1]])


def test_a_learned_list_gives_the_translations_that_it_was_learned_from():
    model = sharp_model("hc-sa")
    # The most probable token is the same among fewer; sums of probabilities differ.
    greedy = dataclasses.replace(OPTIONS, beam_size=1)
    expected = found_by(model, greedy, n_best=1).ids.numpy()[:, 0]
    pairs = list(zip(ROWS, expected.tolist(), strict=True))
    size = VOCABULARY_SIZE
    shortlist = Shortlist.learn(pairs, size, size, candidates=20, common=5)
    steps = ShortlistedSteps(model, shortlist, 60)
    found = found_by(steps, greedy, n_best=1).ids.numpy()[:, 0]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.slow
def test_an_export_has_the_shortlist_and_says_so(tmp_path):
    model = sharp_model("base")
    shortlist = shortlist_of({5: [50, 51]}, common=[90])
    path = export(
        model,
        None,
        tmp_path,
        shortlist=shortlist,
        shortlist_width=40,
        **LIMITS,
    )
    verify(path)
    info = json.loads((path / INFO).read_text())
    assert info["options"]["shortlist_width"] == 40
    found, _ = served(path)
    expected = found_by(ShortlistedSteps(model, shortlist, 40)).ids[:, 0]
    ids = np.asarray(found["ids"])
    np.testing.assert_array_equal(ids, expected[:, : ids.shape[1]])


def test_a_width_needs_a_list(tmp_path):
    model = sharp_model("hc-sa")
    with pytest.raises(ValueError, match=r"`shortlist_width` needs `shortlist`.* 9 "):
        export(model, None, tmp_path, shortlist_width=9, **LIMITS)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("given", "vocabulary", "width"),
    [({}, 4_000, 500), ({"shortlist_width": None}, 32_000, 2_000)],
)
def test_a_list_has_a_width_without_being_told(monkeypatch, given, vocabulary, width):
    """`None`, as of an option that is not given, would leave the list out."""
    model = sharp_model("hc-sa")
    monkeypatch.setattr(model, "vocabulary_size", vocabulary)
    assert Options.of(model, True, **given).shortlist_width == width


def test_what_does_not_fit_is_refused():
    model = sharp_model("hc-sa")
    with pytest.raises(ValueError, match="`shortlist_width` must be an integer >= 6"):
        ShortlistedSteps(model, shortlist_of(common=[90, 91]), 5)
    with pytest.raises(ValueError, match="vocabularies of the model"):
        ShortlistedSteps(model, shortlist_of(common=[VOCABULARY_SIZE]), 50)
    with pytest.raises(TypeError, match=r"one matrix.* Received: Ensemble"):
        ShortlistedSteps(Ensemble([model, model]), shortlist_of(), 50)
    moved = sharp_model("hc-sa", eos_id=50)
    with pytest.raises(ValueError, match="`shortlist_width` must be an integer >= 51"):
        ShortlistedSteps(moved, shortlist_of(), 50)
