"""Quadrants of phrase attention: against known weights."""

import functools

import numpy as np
import pytest
from PIL import Image

import keras_attnvariants as kav
from keras_attnvariants import analysis
from keras_attnvariants.analysis.quadrants import by_quadrant
from keras_attnvariants.analysis.quadrants import winners
from tests.analysis.fakes import KnownWeights
from tests.analysis.fakes import Words
from tests.analysis.fakes import looks


class KnownPhrases(KnownWeights):
    """Interleaved attention of one head with known weights, in the encoder.

    Args:
        weights: `[T, 2, 2, S]`, for a sentence of that length.
    """

    def __init__(self, weights):
        super().__init__(encoder_0={"self": weights})
        layer = kav.PhraseAttention(1, kav.Interleaved(look_ahead=True))
        block = type("Block", (), {"name": "encoder_0", "self_attention": layer})
        self.encoder_blocks = [block]

    def on_batch(self, weights, queries, keys):
        length = queries.shape[1]
        room = length - weights.shape[0]
        whole = np.pad(weights, [(0, room), (0, 0), (0, 0), (0, room)])
        batch = np.broadcast_to(
            whole.reshape(1, 1, length, -1),
            (queries.shape[0], 1, length, 4 * length),
        )
        return np.array(batch, "float32")


# The phrase of the first position does not exist, as query and as key.
WEIGHTS = np.array(
    [
        [[[0.8, 0.0], [0.0, 0.2]], [[0.0, 0.0], [0.0, 0.0]]],
        [[[0.1, 0.0], [0.0, 0.9]], [[0.0, 0.0], [0.0, 1.0]]],
    ]
)


def test_the_three_measures():
    table = analysis.activation_shares(KnownPhrases(WEIGHTS), Words(), [("a b", "x")])
    found = {}
    for row in table:
        assert (row.place, row.layer) == ("encoder", 1)
        found.setdefault(row.measure, []).append(row.share)
    assert [(row.query, row.key) for row in table][:4] == [
        (1, 1),
        (1, 2),
        (2, 1),
        (2, 2),
    ]
    assert found["mass"] == pytest.approx([30, 110 / 3, 0, 100 / 3])
    # Weights of 0.5 or more: 0.8 | 0.9 | 1.0.
    assert found["strong"] == pytest.approx([100 / 3, 100 / 3, 0, 100 / 3])
    # The largest weight of a position: 0.8, then 1.0.
    assert found["winner"] == pytest.approx([50, 0, 0, 50])


def test_the_threshold():
    model, pairs = KnownPhrases(WEIGHTS), [("a b", "x")]
    table = analysis.activation_shares(model, Words(), pairs, threshold=0.95)
    strong = [row.share for row in table if row.measure == "strong"]
    assert strong == [0, 0, 0, 100]
    with pytest.raises(ValueError, match="at most 1"):
        analysis.activation_shares(model, Words(), pairs, threshold=1.5)


def test_a_model_of_phrases():
    """With padding, in all places; every measure sums to 100 in every layer."""
    heads = 2
    model = kav.Transformer(
        40,
        2,
        8,
        8,
        kav.PhraseAttention(heads, kav.Interleaved(look_ahead=True)),
        [kav.PhraseAttention(heads, kav.Interleaved()), kav.DotProductAttention(heads)],
        kav.PhraseAttention(heads, kav.Heterogeneous((1, 2, 3))),
        max_length=32,
    )
    pairs = [("a b c d", "x y z"), ("a b", "x")]
    table = analysis.activation_shares(model, Words(), pairs, threshold=0.05)
    sums = {}
    for row in table:
        key = row[:3]
        sums[key] = sums.get(key, 0) + row.share
    assert list(sums.values()) == pytest.approx([100] * 15)
    layers = [
        ("encoder", 1),
        ("encoder", 2),
        ("decoder", 1),
        ("cross", 1),
        ("cross", 2),
    ]
    assert list(dict.fromkeys(key[:2] for key in sums)) == layers
    assert [row.key for row in table if row[:3] == ("cross", 1, "mass")] == [1, 2, 3]
    assert len(table.plot().axes) == 9


class Pieces(Words):
    """The maps have the words of the ids."""

    @property
    def pieces(self):
        return ["<pad>", "<unk>", "<s>", "</s>", *(f"▁{word}" for word in self.ids)]

    def split(self, texts):
        return [[f"▁{word}" for word in text.split()] for text in texts]


def test_heat_maps(tmp_path):
    table = analysis.quadrant_maps(KnownPhrases(WEIGHTS), Pieces(), "a b", "x")
    cells = {(row.query, row.key, row.row_text, row.column_text): row for row in table}
    assert cells[1, 1, "a", "a"].weight == pytest.approx(0.8)
    assert cells[1, 2, "b", "a b"].weight == pytest.approx(0.9)
    assert cells[2, 2, "a b", "a b"].weight == pytest.approx(1.0)
    assert len(table) == 4 + 4 + 2 + 2  # no phrase query at the first token
    figure = table.plot(tmp_path / "maps.png")
    *maps, scale = figure.axes
    assert [axis.get_title("left").split("\n")[1] for axis in maps] == [
        "token to token",
        "token to phrase",
        "phrase to token",
        "phrase to phrase",
    ]
    assert {axis.images[0].get_clim() for axis in maps} == {(0.0, 1.0)}
    with Image.open(tmp_path / "maps.png") as image:
        assert image.size[0] > 100


def test_models_without_phrases():
    model = KnownWeights(encoder_0={"self": looks(0)})
    with pytest.raises(ValueError, match="attends to tokens and phrases"):
        analysis.activation_shares(model, Words(), [("a", "x")])
    with pytest.raises(ValueError, match="attends to tokens and phrases"):
        analysis.quadrant_maps(model, Pieces(), "a b", "x")


def quadrants(*rows):
    """Scores `[1, 1, T, 2, 2, S]` of rows `[[tt, tp], [pt, pp]]`, each `[S]`."""
    return np.array(rows, "float32")[None, None]


FIRST = quadrants([[[0.9, 0.0], [0.0, 0.1]], [[0, 0], [0, 0]]])
SECOND = quadrants(
    [[[0.4, 0.0], [0.0, 0.6]], [[0.7, 0.2], [0.1, 0.0]]],
    [[[0.5, 0.0], [0.5, 0.0]], [[0.0, 0.0], [0.3, 0.7]]],
)


def test_weights_are_added_up_by_quadrant():
    near = functools.partial(np.testing.assert_allclose, atol=1e-6)
    near(by_quadrant(FIRST) + by_quadrant(SECOND), [[1.8, 1.2], [0.9, 1.1]])
    near(by_quadrant(FIRST >= 0.5) + by_quadrant(SECOND >= 0.5), [[2, 2], [1, 1]])


def test_the_largest_weight_of_a_position_wins():
    counts = winners(FIRST) + winners(SECOND)
    np.testing.assert_array_equal(counts, [[1, 0], [1, 1]])
    assert not winners(np.zeros((1, 1, 1, 2, 2, 3))).any()
