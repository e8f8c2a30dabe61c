"""Directions in which heads look: against known weights."""

import numpy as np
import pytest

import keras_attnvariants as kav
from keras_attnvariants import analysis
from keras_attnvariants.analysis import streams
from tests.analysis.fakes import KnownWeights
from tests.analysis.fakes import Words
from tests.analysis.fakes import looks

# The first head is off the diagonal at the first and the last of four tokens, the
# second nowhere; in a sentence of two tokens, neither is.
ENCODER = np.concatenate([looks(3, 0, 1, 0), looks(0, 1, 2, 3)])
ENCODER[0, 0, 0] = 0.5
# Always at the first token: off the diagonal from the third on.
DECODER = looks(0, 0, 0, 0)
DIAGONAL = KnownWeights(encoder_0={"self": ENCODER}, decoder_0={"self": DECODER})
PAIRS = [("a b c d", "x y z"), ("a b", "x y")]


def test_the_distance_of_the_largest_weight():
    # Offsets of the first head: +3, 0, 0, -3; of the second: none in its last row.
    first, second = looks(3, 1, 2, 0), looks(1, 2, 3, 0)
    second[0, 3] = 0
    model = KnownWeights(encoder_0={"self": np.concatenate([first, second])})
    table = analysis.locality(model, Words(), [("a b c d", "x")])
    near, far = table.rows
    assert near[:5] == ("encoder", 1, 1, 1.5, 0.0)
    assert near[5:] == (0.25, 0, 0, 0.5, 0, 0, 0.25, 4)
    assert near.shares == (0.25, 0, 0, 0.5, 0, 0, 0.25)
    assert far[:5] == ("encoder", 1, 2, 1.0, 1.0)
    assert far.right_1 == 1 and far.tokens == 3


def test_sentences_count_by_their_tokens_and_padding_does_not():
    model = KnownWeights(
        encoder_0={"self": looks(0, 0, 0)}, decoder_0={"cross": looks(2, 2, 2)}
    )
    pairs = [("a b c", "x y"), ("a", "x y"), ("", "x"), ("a " * 17, "x")]
    table = analysis.locality(model, Words(), pairs)
    assert (table.sentences, table.skipped) == (2, 2)
    encoder, cross = table
    # 0, 1, 2 of the first sentence and 0 of the second.
    assert (encoder.distance, encoder.signed, encoder.tokens) == (0.75, -0.75, 4)
    # In the second sentence, the token looked at does not exist: rows of nothing.
    assert (cross.place, cross.signed, cross.tokens) == ("cross", 1.0, 3)


def test_hard_coded_heads_look_where_they_are_told():
    attention = kav.DotProductAttention(num_heads=2)
    model = kav.Transformer(
        30,
        1,
        8,
        8,
        kav.HardCodedAttention(num_heads=2, offsets=(-1, 2)),
        attention,
        attention,
        max_length=16,
    )
    table = analysis.locality(model, Words(), [("a b c d e", "x y")])
    left, right = (row for row in table if row.place == "encoder")
    # At a border the nearest token has the largest weight.
    assert left.signed == pytest.approx(-4 / 5)
    assert right.signed == pytest.approx((2 + 2 + 2 + 1 + 0) / 5)
    assert [row.place for row in table] == ["encoder"] * 2 + ["decoder"] * 2 + [
        "cross"
    ] * 2


def test_the_weight_by_distance():
    weights = [[[0.7, 0.3, 0], [0.2, 0.5, 0.3], [0, 0, 1]]]
    uniform = np.full((1, 3, 3), 1 / 3)
    model = KnownWeights(encoder_0={"self": np.concatenate([weights, uniform])})
    table = analysis.weight_by_distance(model, Words(), [("a b c", "x")], farthest=2)
    found = {row.distance: row.weight for row in table}
    assert list(found) == [-2, -1, 0, 1, 2]
    expected = {
        -2: 1 / 3 / 6,
        -1: (0.2 + 2 / 3) / 6,
        0: (2.2 + 1) / 6,
        1: (0.6 + 2 / 3) / 6,
        2: 1 / 3 / 6,
    }
    assert found == pytest.approx(expected)
    assert sum(found.values()) == pytest.approx(1)
    even = {row.distance: row.even for row in table}
    assert even == pytest.approx({-2: 1 / 9, -1: 2 / 9, 0: 1 / 3, 1: 2 / 9, 2: 1 / 9})


def test_rows_without_weights_do_not_count_in_the_weight_by_distance():
    second = looks(0, 1, 2)
    second[0, 1:] = 0
    model = KnownWeights(encoder_0={"self": np.concatenate([looks(0, 1, 2), second])})
    table = analysis.weight_by_distance(model, Words(), [("a b c", "x")], farthest=2)
    assert {row.distance: row.weight for row in table}[0] == 1.0
    even = {row.distance: row.even for row in table}
    # Two rows at the first position, one at the others.
    assert even == pytest.approx(
        {-2: 1 / 12, -1: 2 / 12, 0: 4 / 12, 1: 3 / 12, 2: 2 / 12}
    )


def test_the_weight_by_distance_if_all_weights_were_equal():
    """In the decoder, a row sees itself and the positions before it."""
    model = KnownWeights(decoder_0={"self": looks(0, 0, 0), "cross": looks(0, 0, 0)})
    table = analysis.weight_by_distance(model, Words(), [("a b", "x y")], farthest=2)
    rows = {(row.place, row.distance): row.even for row in table}
    decoder = [rows["decoder", n] for n in range(-2, 3)]
    assert decoder == pytest.approx([1 / 9, 5 / 18, 11 / 18, 0, 0])
    cross = [rows["cross", n] for n in range(-2, 3)]
    assert cross == pytest.approx([1 / 6, 1 / 3, 1 / 3, 1 / 6, 0])


def test_the_entropy():
    even, sure = np.full((1, 4, 4), 0.25), looks(0, 0, 0, 0)
    half = 0.3 * (looks(0, 0, 0, 0) + looks(1, 1, 1, 1))  # rows sum to 0.6
    model = KnownWeights(
        encoder_0={"self": np.concatenate([even, sure, half])},
        decoder_0={"self": np.array([[[1, 0], [0.5, 0.5]]])},
    )
    table = analysis.entropy(model, Words(), [("a b c d", "x")])
    found = [(row.place, row.entropy, row.relative) for row in table]
    assert found == [
        ("encoder", 2.0, 1.0),
        ("encoder", 0.0, 0.0),
        ("encoder", 1.0, 0.5),
        # The first position has no choice.
        ("decoder", 0.5, 1.0),
    ]


def test_a_corpus_in_many_batches_is_the_mean_of_its_sentences(monkeypatch):
    attention = kav.DotProductAttention(num_heads=2)
    model = kav.Transformer(40, 2, 8, 8, attention, attention, attention, max_length=64)
    rng, words = np.random.default_rng(3), Words()
    pairs = [
        tuple(" ".join(rng.choice(list("abcdefgh"), rng.integers(1, 30))) for _ in "st")
        for _ in range(7)
    ]
    whole = analysis.entropy(model, words, pairs)
    monkeypatch.setattr(streams, "CHUNK", 3)
    monkeypatch.setattr(streams, "MAX_SENTENCES", 2)
    parts = analysis.entropy(model, words, iter(pairs))
    assert parts.sentences == 7
    for a, b in zip(whole, parts, strict=True):
        assert a[:3] == b[:3] and a[3:] == pytest.approx(b[3:], rel=1e-4)
    singles = [analysis.entropy(model, words, [pair]).rows for pair in pairs]
    first = [rows[0] for rows in singles]
    total = sum(row.tokens for row in first)
    mean = sum(row.entropy * row.tokens for row in first) / total
    assert (whole.rows[0].entropy, whole.rows[0].tokens) == pytest.approx((mean, total))


def test_nothing_to_look_at():
    model = KnownWeights(encoder_0={})
    with pytest.raises(ValueError, match="No layer of this model has weights"):
        analysis.locality(model, Words(), [("a", "b")])
    with pytest.raises(ValueError, match="no sentence to analyse.*1 that are empty"):
        analysis.locality(model, Words(), [("", "b")])


def test_the_share_of_off_diagonal_tokens():
    table = analysis.off_diagonality(DIAGONAL, Words(), PAIRS)
    assert [row[:3] for row in table] == [
        ("encoder", None, None),
        ("encoder", 1, 1),
        ("encoder", 1, 2),
        ("decoder", None, None),
        ("decoder", 1, 1),
    ]
    # Decoder: 2 of 4 positions with BOS, then 1 of 3.
    expected = [0.125, 0.25, 0.0, (1 / 2 + 1 / 3) / 2, (1 / 2 + 1 / 3) / 2]
    assert [row.share for row in table] == pytest.approx(expected)


def test_the_distance_that_counts():
    table = analysis.off_diagonality(DIAGONAL, Words(), PAIRS, far=1)
    # Head 1: all four tokens of the first sentence, one of two of the second.
    assert table.rows[1].share == pytest.approx(0.75)
