"""What the recipes share."""

import pytest
import typer


def test_translations_keep_their_order(recipe, monkeypatch):
    shared = recipe("shared")
    monkeypatch.setattr(shared, "CHUNK", 3)
    batches = []

    def translate(texts):
        batches.append([len(text) for text in texts])
        return [text.upper() for text in texts]

    texts = ["ccc", "a", "bb", "dddd", "", "a", "bb"]
    assert shared.translate_all(translate, texts, "x") == [t.upper() for t in texts]
    assert batches == [[0, 1, 1], [2, 2, 3], [4]]


def test_errors_become_one_line(recipe, capsys):
    with pytest.raises(typer.Exit) as stop, recipe("shared").clear_errors():
        raise ValueError("first line,\n  second. Received: 3")
    assert stop.value.exit_code == 2
    assert capsys.readouterr().err == "Error: first line, second. Received: 3\n"


def test_mistakes_of_ours_keep_their_traceback(recipe):
    with pytest.raises(KeyError), recipe("shared").clear_errors():
        raise KeyError("bug")
