"""Off-diagonality: against weights that are known."""

import numpy as np
import pytest

from keras_attnvariants import analysis
from keras_attnvariants.analysis.diagonals import sentence_values
from keras_attnvariants.analysis.streams import Stream
from keras_attnvariants.analysis.streams import encoded
from tests.analysis.fakes import KnownWeights
from tests.analysis.fakes import Words
from tests.analysis.fakes import looks

# The first head is off the diagonal at the first and the last of four tokens, the
# second nowhere; in a sentence of two tokens, neither is.
ENCODER = np.concatenate([looks(3, 0, 1, 0), looks(0, 1, 2, 3)])
ENCODER[0, 0, 0] = 0.5
# Always at the first token: off the diagonal from the third on.
DECODER = looks(0, 0, 0, 0)
MODEL = KnownWeights(encoder_0={"self": ENCODER}, decoder_0={"self": DECODER})
PAIRS = [("a b c d", "x y z"), ("a b", "x y")]


def test_the_share_of_off_diagonal_tokens():
    table = analysis.off_diagonality(MODEL, Words(), PAIRS)
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
    table = analysis.off_diagonality(MODEL, Words(), PAIRS, far=1)
    # Head 1: all four tokens of the first sentence, one of two of the second.
    assert table.rows[1].share == pytest.approx(0.75)


def test_the_values_of_sentences():
    stream = Stream(MODEL, encoded(Words(), [("", "x"), *PAIRS]))
    [(batch, values)] = sentence_values(stream)
    assert batch.numbers.tolist() == [1, 2]
    np.testing.assert_allclose(values["encoder"], [0.25, 0])
    np.testing.assert_allclose(values["decoder"], [1 / 2, 1 / 3])
