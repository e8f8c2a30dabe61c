"""What the recipes share."""

import json

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


@pytest.mark.parametrize(
    ("events", "better"),
    [
        ([("period", "val_loss", 3.0)], "best"),  # ended before its average
        ([("period", "val_loss", 3.0), ("averaged", "val_loss", 3.2)], "best"),
        ([("period", "val_loss", 3.0), ("averaged", "val_loss", 2.9)], "averaged"),
        ([("period", "val_bleu", 20.0), ("averaged", "val_bleu", 19.0)], "best"),
        ([("period", "val_bleu", 20.0), ("averaged", "val_bleu", 21.0)], "averaged"),
        ([("averaged", "val_loss", 3.0), ("period", "val_loss", 2.5)], "best"),
        ([("period", "loss", 3.0), ("averaged", "step", 7)], "averaged"),
    ],
)
def test_the_better_model_of_a_run(events, better, recipe, tmp_path):
    lines = [json.dumps({"event": event, name: x}) for event, name, x in events]
    (tmp_path / "log.jsonl").write_text("\n".join(lines) + "\n")
    assert recipe("shared").better_of(tmp_path / "log.jsonl") == better


def test_errors_become_one_line(recipe, capsys):
    with pytest.raises(typer.Exit) as stop, recipe("shared").clear_errors():
        raise ValueError("first line,\n  second. Received: 3")
    assert stop.value.exit_code == 2
    assert capsys.readouterr().err == "Error: first line, second. Received: 3\n"


def test_mistakes_of_ours_keep_their_traceback(recipe):
    with pytest.raises(KeyError), recipe("shared").clear_errors():
        raise KeyError("bug")
