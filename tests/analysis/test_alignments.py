"""Alignment error rate: against known links, and on real files."""

import gzip

import numpy as np
import pytest

import keras_attnvariants as kav
from keras_attnvariants import analysis
from keras_attnvariants.analysis.alignments import AlignedPair
from keras_attnvariants.analysis.alignments import aligned_examples
from tests.analysis.fakes import KnownWeights
from tests.analysis.fakes import Words
from tests.analysis.fakes import looks

DIAGONAL = frozenset({(0, 0), (1, 1), (2, 2)})


def errors(pair, cross):
    model = KnownWeights(decoder_0={"cross": cross})
    return analysis.alignment_errors(model, Words(), [pair])


def test_a_head_that_aligns_and_one_that_does_not():
    # The last row predicts EOS, and links nothing.
    heads = np.concatenate([looks(0, 1, 2, 0, length=3), looks(2, 1, 0, 0, length=3)])
    heads[1] *= 0.5  # in the mean of both, the first decides
    table = errors(AlignedPair("a b c", "x y z", DIAGONAL, DIAGONAL), heads)
    assert [row.head for row in table] == [None, 1, 2]
    assert [row.error_rate for row in table] == pytest.approx([0, 0, 2 / 3])
    assert [row.precision for row in table] == pytest.approx([1, 1, 1 / 3])


def test_possible_links_cost_nothing():
    sure, possible = frozenset({(0, 0)}), frozenset({(0, 0), (1, 1)})
    table = errors(
        AlignedPair("a b", "x y z", sure, possible), looks(0, 1, 1, 0, length=2)
    )
    # Links 0-0 (sure), 1-1 (possible) and 1-2: 1 - (1 + 2) / (3 + 1).
    assert table.rows[1][2:6] == pytest.approx((0.25, 2 / 3, 1, 3))


def test_rows_without_weights_link_nothing():
    cross = looks(0, 1, 2, 0, length=3)
    cross[0, 1:] = 0
    table = errors(AlignedPair("a b c", "x y z", DIAGONAL, DIAGONAL), cross)
    assert table.rows[1][2:6] == pytest.approx((1 - 2 / 4, 1, 1 / 3, 1))


def test_intervals_are_those_of_sentences_drawn_again_and_again():
    """A head that aligns the words of two out of three sentences."""
    links = frozenset({(0, 0), (1, 1)})
    right, wrong = (
        AlignedPair("a b", "x y", links, links),
        AlignedPair(
            "a b", "x y", frozenset({(0, 1), (1, 0)}), frozenset({(0, 1), (1, 0)})
        ),
    )
    model = KnownWeights(decoder_0={"cross": looks(0, 1, 0, length=2)})
    pairs = 20 * [right, right, wrong]
    row = analysis.alignment_errors(model, Words(), pairs).rows[1]
    assert row.error_rate == pytest.approx(1 / 3)
    reach = 1.96 * np.sqrt(1 / 3 * 2 / 3 / len(pairs))
    assert (row.low, row.high) == pytest.approx(
        (1 / 3 - reach, 1 / 3 + reach), abs=0.02
    )
    again = analysis.alignment_errors(model, Words(), iter(pairs)).rows[1]
    assert again == row


def test_one_sentence_has_no_interval():
    pair = AlignedPair("a b c", "x y z", DIAGONAL, DIAGONAL)
    row = errors(pair, looks(0, 1, 0, 0, length=3)).rows[1]
    assert row.low == row.error_rate == row.high


class Letters(Words):
    """Every letter is a token."""

    def encode(self, texts):
        return super().encode([" ".join(text) for text in texts])


def test_words_are_linked_if_any_of_their_tokens_are():
    # Tokens a b | c and x | y z: y looks at b, z at c.
    cross = looks(0, 1, 2, 0, length=3)
    model = KnownWeights(decoder_0={"cross": cross})
    links = frozenset({(0, 0), (0, 1), (1, 1)})
    pair = AlignedPair("ab c", "x yz", links, links)
    table = analysis.alignment_errors(model, Letters(), [pair])
    assert table.rows[1][2:6] == (0, 1, 1, 3)


def test_tokens_of_words_are_those_of_the_sentence(corpus_folder):
    files = [corpus_folder / f"train.{language}" for language in ("xx", "yy")]
    for kind in ("unigram", "bpe"):
        tokenizer = kav.Tokenizer.train(files, 50, kind)
        for text in ("be la dim", "Q be ☃ζ la"):
            pair = AlignedPair(text, text, frozenset(), frozenset())
            [example] = aligned_examples(tokenizer, [pair])
            assert [list(example.source_ids)] == tokenizer.encode([text])
            assert len(example.note.source) == len(example.source_ids)


def write(folder, **files):
    for name, text in files.items():
        (folder / f"test.{name}").write_text(text, "utf-8")
    return folder


def test_files(tmp_path):
    write(tmp_path, xx="a b\nc\n", yy="x\ny z\n")
    with gzip.open(tmp_path / "test.align.gz", "wt") as file:
        file.write("0-0 1p0\n0-1 0?0\n")
    first, second = analysis.read_alignments(tmp_path, "xx", "yy")
    assert first == ("a b", "x", {(0, 0)}, {(0, 0), (1, 0)})
    assert second.sure == {(0, 1)} and second.possible == {(0, 1), (0, 0)}
    reverse = analysis.read_alignments(tmp_path, "yy", "xx", reverse=True)
    assert next(reverse).possible == {(0, 0), (0, 1)}
    with pytest.raises(ValueError, match="wrong way round.*line 1 of"):
        list(analysis.read_alignments(tmp_path, "yy", "xx"))


@pytest.mark.parametrize(
    ("align", "phrase"),
    [
        ("0-0\n", "test.align ended before line 2"),
        ("0-0\n0:1\n", "'0:1' in line 2"),
        ("0-0\n0-0\n0-0\n", "test.xx, test.yy ended before line 3"),
    ],
)
def test_damaged_files(align, phrase, tmp_path):
    write(tmp_path, xx="a b\nc\n", yy="x\ny z\n", align=align)
    with pytest.raises(ValueError, match=phrase):
        list(analysis.read_alignments(tmp_path, "xx", "yy"))


def test_the_gold_alignments(data_folder):
    pairs = list(
        analysis.read_alignments(data_folder / "gold-align-grc-en", "grc", "en")
    )
    assert len(pairs) == 492
    assert all(pair.sure == pair.possible for pair in pairs)


def test_a_model_without_cross_attention():
    model = KnownWeights(encoder_0={"self": looks(0)})
    pair = AlignedPair("a", "x", frozenset(), frozenset())
    with pytest.raises(ValueError, match="no cross-attention"):
        analysis.alignment_errors(model, Words(), [pair])
