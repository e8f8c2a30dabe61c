"""Tokenisation in a graph against the tokenizer in Python."""

import pytest
import tensorflow as tf

from keras_attnvariants.serving.inputs import GraphTokenizer

TEXTS = [
    b"",
    b" ",
    b"abc d",
    b"\0abc\0",
    b"\xff\xfe\xfd",
    b"\xe3\x81",
    b"\xed\xa0\x80abc",
    b"\xc0\x80",
    b"\xf5\x80\x80\x80",
    b"\xef\xbb\xbfabc",
    "\u2028\x85x".encode(),
    b"a\nb\tc\rd",
    "a\u0301\u0302".encode(),
    "שלום".encode(),
    "あäいö".encode() * 9,
    "😀".encode() * 30,
    b"a" * 100,
    b"\xff" * 100,
]
MAX_CHARACTERS = 20


@pytest.fixture
def graph_tokenizer(tokenizer):
    return GraphTokenizer(tokenizer, MAX_CHARACTERS)


def test_ids_equal_those_of_python(tokenizer, graph_tokenizer):
    read = [text.decode("utf-8", "replace")[:MAX_CHARACTERS] for text in TEXTS]
    expected = tokenizer.encode(read)
    ids, lengths, _ = graph_tokenizer.encode(tf.constant(TEXTS), 8)
    for row, length, wanted in zip(ids, lengths, expected, strict=True):
        assert row[:length].numpy().tolist() == wanted[:8]
        assert not row[length:].numpy().any()


def test_what_is_cut_is_flagged(tokenizer, graph_tokenizer):
    read = [text.decode("utf-8", "replace") for text in TEXTS]
    too_long = [len(text) > MAX_CHARACTERS for text in read]
    many = [len(row) > 8 for row in tokenizer.encode([t[:20] for t in read])]
    expected = [a or b for a, b in zip(too_long, many, strict=True)]
    assert True in too_long and True in many and False in expected
    _, _, is_cut = graph_tokenizer.encode(tf.constant(TEXTS), 8)
    assert is_cut.numpy().tolist() == expected


def test_cutting_keeps_whole_characters(graph_tokenizer):
    cut, is_cut = graph_tokenizer.cut(tf.constant(TEXTS))
    for text, shorter, flag in zip(TEXTS, cut.numpy(), is_cut.numpy(), strict=True):
        whole = text.decode("utf-8", "replace")
        assert shorter.decode("utf-8") == whole[:MAX_CHARACTERS]
        assert flag == (len(whole) > MAX_CHARACTERS)


def test_decoding_undoes_encoding(tokenizer, graph_tokenizer, texts):
    rows = [[*row, tokenizer.eos_id] for row in tokenizer.encode(texts[:9])]
    lengths = tf.constant([len(row) for row in rows])
    ids = tf.ragged.constant(rows).to_tensor(0)
    decoded = graph_tokenizer.decode(ids, lengths).numpy()
    expected = tokenizer.decode(rows)
    assert [text.decode() for text in decoded] == expected


def test_nothing_decodes_to_an_empty_text(graph_tokenizer):
    ids = tf.constant([[0, 0], [3, 0]])
    assert (
        graph_tokenizer.decode(ids, tf.constant([0, 1])).numpy().tolist() == [b""] * 2
    )


def test_pieces_have_the_shape_of_the_ids(tokenizer, graph_tokenizer):
    pieces = graph_tokenizer.pieces(tf.constant([[[4, 3], [1, 0]]])).numpy()
    assert pieces.tolist() == [
        [[tokenizer.pieces[4].encode(), b"</s>"], [b"<unk>", b""]]
    ]
