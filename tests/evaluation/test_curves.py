"""Learning curves: the drawing and its table."""

import io
import math

import pytest
from rich.console import Console

from keras_attnvariants.evaluation import curves


def log(validated=True, bleu=False, scale=1.0):
    """The records of a run of 1,000 updates."""
    events = []
    for step in range(50, 1001, 50):
        loss = scale * (2 + 5 * math.exp(-step / 300))
        record = {"step": step, "seconds": step / 4, "loss": loss}
        events.append(
            record
            | {"event": "updates", "learning_rate": step * 1e-6}
            | {"tokens_per_second": 5000.0 + step}
        )
        if validated and step % 250 == 0:
            scores = {"val_loss": loss + 0.1}
            scores |= {"val_bleu": step / 40} if bleu else {}
            events.append(record | {"event": "period"} | scores)
    return events


def test_training_and_validation_of_each_run():
    figure = curves.draw_curves({"a": log(bleu=True), "b": log(scale=2.0)})
    loss, bleu, rate, speed = figure.axes
    assert [len(axis.lines) for axis in figure.axes] == [4, 1, 2, 2]
    training, validation, *_ = loss.lines
    assert len(training.get_xdata()) == 20
    assert list(validation.get_xdata()) == [250, 500, 750, 1000]
    assert training.get_color() == validation.get_color() != loss.lines[2].get_color()
    assert bleu.lines[0].get_ydata()[-1] == 25.0
    [legend] = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["a", "b"]


def test_measures_that_are_missing_have_no_axes():
    figure = curves.draw_curves({"a": log(validated=False)})
    titles = [axis.get_title(loc="left") for axis in figure.axes]
    assert len(titles) == 3 and "validation BLEU" not in titles
    assert not figure.legends


def test_values_that_are_not_finite_are_left_out():
    events = [
        *log(),
        {"event": "period", "step": 1001, "seconds": 1.0, "val_loss": None},
    ]
    assert curves.series(events, "val_loss")[0][-1] == 1000


def test_nothing_to_plot():
    with pytest.raises(ValueError, match="nothing to plot.*a run"):
        curves.draw_curves({"a run": []})


def test_the_best_values_are_a_table():
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(curves.summary({"[b]&1": log(bleu=True), "b": log()}))
    text = console.export_text()
    for value in (
        "[b]&1",
        "1,000",
        "4:10",
        "25.00 at 1,000",
        "2.278 at 1,000",
        "5,550",
        "–",  # no BLEU
    ):
        assert value in text


def test_a_long_name_is_whole_in_the_table():
    console = Console(width=80, record=True, file=io.StringIO())
    name = "a_run_with_a_long_name_" * 2 + "base"
    console.print(curves.summary({name: log()}))
    text = console.export_text()
    column = "".join(line[1:].partition("│")[0].strip() for line in text.splitlines())
    assert name in column


def test_text_in_a_drawing_is_text(tmp_path):
    paths = [tmp_path / name for name in ("one.svg", "two.svg")]
    for path in paths:
        curves.save_picture(curves.draw_curves({"<b>&1": log(), "b": log()}), path)
    text = paths[0].read_text("utf-8")
    assert "&lt;b&gt;&amp;1" in text and "learning rate" in text
    assert text == paths[1].read_text("utf-8")


def test_the_picture(tmp_path):
    path = tmp_path / "new" / "curves.png"
    curves.save_picture(curves.draw_curves({"a": log()}), path)
    assert path.read_bytes().startswith(b"\x89PNG")
