"""BLEU in bins: against corpus BLEU of the sentences of each bin."""

import numpy as np
import pytest

from keras_attnvariants import analysis
from keras_attnvariants import evaluation
from keras_attnvariants.analysis import bleu_by_bin
from keras_attnvariants.analysis import streams
from keras_attnvariants.analysis.streams import Stream
from keras_attnvariants.analysis.streams import encoded
from tests.analysis.fakes import KnownWeights
from tests.analysis.fakes import Words
from tests.analysis.fakes import looks
from tests.analysis.test_heads import DIAGONAL
from tests.analysis.test_heads import PAIRS as PAIRS_OF_TWO

WORDS = np.array(["one", "two", "three", "four", "five", "six", "seven,"])


def sentences(count, rng, length):
    return [" ".join(rng.choice(WORDS, length(rng))) for _ in range(count)]


RNG = np.random.default_rng(5)
SHORT = sentences(30, RNG, lambda rng: rng.integers(4, 11))
LONG = sentences(20, RNG, lambda rng: rng.integers(41, 60))
REFERENCES = SHORT + LONG
NUMBERS = [str(number) for number in range(len(REFERENCES))]
PAIRS = list(zip(NUMBERS, REFERENCES, strict=True))


def base(texts):
    return [REFERENCES[int(text)] for text in texts]


def worse_when_long(texts):
    """Drops the last third of long sentences."""
    found = [text.split() for text in base(texts)]
    return [" ".join(w if len(w) < 40 else w[: 2 * len(w) // 3]) for w in found]


def test_bleu_of_each_bin_is_that_of_its_sentences():
    systems = {"base": base, "other": worse_when_long}
    table = analysis.bleu_by_length(systems, PAIRS, samples=50)
    assert [(row.system, row.sentences) for row in table] == [
        ("base", 30),
        ("other", 30),
        ("base", 20),
        ("other", 20),
    ]
    _, same, _, shorter = table
    assert same.bleu == pytest.approx(100) and same.difference == 0
    assert (same.low, same.high) == (4, 10) and shorter.low >= 41
    numbers = NUMBERS[30:]
    expected = evaluation.corpus_score("bleu", worse_when_long(numbers), LONG).value
    assert shorter.bleu == pytest.approx(expected, abs=1e-9)
    assert shorter.difference == pytest.approx(expected - 100)
    low, high = shorter.difference_low, shorter.difference_high
    assert low < shorter.difference < high < 0


def test_a_length_at_an_edge_is_in_the_lower_bin():
    def echo(texts):
        return [" ".join("w" * int(n)) for n in texts]

    pairs = [(str(n), " ".join("w" * n)) for n in (10, 11, 20, 21, 40, 41)]
    table = analysis.bleu_by_length({"a": echo}, pairs, samples=2)
    assert [(row.low, row.high) for row in table] == [
        (10, 10),
        (11, 20),
        (21, 21),
        (40, 40),
        (41, 41),
    ]


def test_bins_of_off_diagonality_are_of_equal_size(monkeypatch):
    """Each sentence has as many off-diagonal tokens as its letters after the second."""
    monkeypatch.setattr(streams, "CHUNK", 2)
    model = KnownWeights(encoder_0={"self": looks(*[0] * 9)})
    sources = ["a b c d e f g h", "a b", "a b c d", "a", "a b c d e f", "a b c"]
    pairs = [(source, "six seven four three") for source in sources]
    good = {"a", "a b", "a b c"}

    def translate(texts):
        return [
            "six seven four three" if text in good else "six seven four"
            for text in texts
        ]

    table = analysis.bleu_by_off_diagonality(
        model, Words(), {"base": translate}, pairs, bins=2, samples=5
    )
    near, far = table
    assert (near.by, near.sentences, far.sentences) == (
        "off-diagonality, encoder",
        3,
        3,
    )
    assert (near.low, near.high) == (0, pytest.approx(1 / 3))
    assert (far.low, far.high) == pytest.approx((1 / 2, 6 / 8))
    assert near.bleu == pytest.approx(100)
    expected = evaluation.corpus_score(
        "bleu", ["six seven four"] * 3, ["six seven four three"] * 3
    )
    assert far.bleu == pytest.approx(expected.value)


def test_the_picture_shows_differences():
    systems = {"base": base, "other": worse_when_long}
    [axis] = analysis.bleu_by_length(systems, PAIRS, samples=5).plot().axes
    other = axis.lines[-1]
    assert other.get_label() == "other" and other.get_ydata()[0] == 0


def test_wrong_arguments():
    with pytest.raises(ValueError, match="must rise"):
        analysis.bleu_by_length({"a": base}, PAIRS, edges=(10, 10))
    with pytest.raises(ValueError, match="no sentence to translate"):
        analysis.bleu_by_length({"a": base}, [])
    with pytest.raises(ValueError, match="at least one system"):
        analysis.bleu_by_length({}, PAIRS)
    with pytest.raises(ValueError, match="no self-attention"):
        analysis.bleu_by_off_diagonality(
            KnownWeights(encoder_0={}), Words(), {"a": base}, PAIRS[:3]
        )


def test_the_interval_is_that_of_resampled_sentences():
    """Half of the sentences are right: BLEU varies with how many of them are drawn."""
    right = [("a b c d e", "a b c d e")] * 50
    wrong = [("a b c d e", "v w x y z")] * 50
    table = analysis.bleu_by_length({"a": lambda x: x}, right + wrong, samples=2000)
    [row] = table
    # Precisions are the share of sentences that are right: 50 % with deviation 5.
    assert row.bleu == pytest.approx(50)
    assert (row.bleu_low, row.bleu_high) == pytest.approx((50 - 9.8, 50 + 9.8), abs=1)
    assert table == analysis.bleu_by_length(
        {"a": lambda x: x}, right + wrong, samples=2000
    )


def test_the_off_diagonality_of_sentences():
    """The mean over all heads; NaN for a sentence that is skipped."""
    stream = Stream(DIAGONAL, encoded(Words(), [("", "x"), *PAIRS_OF_TWO]))
    encoder, decoder = bleu_by_bin.self_attention_values(stream, 3)
    np.testing.assert_allclose(encoder, [np.nan, 0.25, 0])
    np.testing.assert_allclose(decoder, [np.nan, 1 / 2, 1 / 3])
