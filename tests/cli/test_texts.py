"""Lines, chunks and the order of translations."""

import io

from keras_attnvariants.cli import texts


def test_lines_end_at_newlines_only():
    data = "a\x0bb\r\n\nc\u2028d\x1ce\rf".encode() + b"\n\xff"
    lines = list(texts.read_lines(io.BytesIO(data)))
    assert lines == ["a\x0bb", "", "c\u2028d\x1ce\rf", "\ufffd"]


def test_chunks_grow_up_to_the_largest():
    sizes = [len(chunk) for chunk in texts.chunks(map(str, range(22)), 2, 8)]
    assert sizes == [2, 4, 8, 8]
    assert list(texts.chunks([])) == []


def test_translations_keep_their_order_and_come_early():
    read, lists = [], []

    def lines():
        for number in range(100):
            read.append(number)
            yield f"line {number}"

    def translate(chunk):
        lists.append(len(chunk))
        return [text.upper() for text in chunk]

    found = texts.translated(translate, lines())
    assert next(found) == "LINE 0"
    assert len(read) == texts.FIRST_CHUNK
    assert list(found) == [f"LINE {number}" for number in range(1, 100)]
    assert lists == [32, 64, 4]


def test_one_line_at_a_time():
    lists = []

    def translate(chunk):
        lists.append(len(chunk))
        return chunk

    assert list(texts.translated(translate, "abc", chunk=1)) == ["a", "b", "c"]
    assert lists == [1, 1, 1]


def test_progress_is_on_standard_error(capsys):
    translate = texts.with_progress(lambda chunk: chunk, "Translating")
    assert translate(["a", "b"]) == ["a", "b"]
    assert capsys.readouterr().out == ""
