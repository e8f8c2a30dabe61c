"""The bar shows whichever of updates and time is further on."""

import io
from types import SimpleNamespace

import pytest
from rich.console import Console

from keras_attnvariants.training import ProgressBar
from keras_attnvariants.training import TimeLimit


def bar_at(step, limit=None, terminal=True):
    file = io.StringIO()
    console = Console(file=file, force_terminal=terminal, width=80)
    bar = ProgressBar(100, limit, console)
    bar.set_model(SimpleNamespace(optimizer=SimpleNamespace(iterations=step)))
    return bar, file


def test_updates_or_time():
    limit = TimeLimit(minutes=1)
    limit.seconds = 30.0
    for step, completed in ((20, 0.5), (90, 0.9), (110, 1.0)):
        bar, _ = bar_at(step, limit)
        bar.on_train_batch_end(0, {"loss": 2.5})
        assert bar.completed == completed
    bar, _ = bar_at(20)
    bar.on_train_batch_end(0, {"loss": 2.5})
    assert bar.completed == 0.2


def test_each_validation_is_a_line():
    bar, file = bar_at(40, terminal=False)
    with bar:
        bar.on_train_begin()
        bar.on_train_batch_end(0, {"loss": 2.5})
        bar.on_epoch_end(0, {"loss": 2.5, "tokens": 9.0, "val_loss": 2.25})
        bar.on_train_end()
    assert file.getvalue() == "update 40: loss 2.500, val_loss 2.250\n"


def test_the_terminal_is_restored_after_an_error():
    bar, file = bar_at(40)
    with pytest.raises(KeyError), bar:
        bar.on_train_begin()
        raise KeyError
    hidden, shown = "\x1b[?25l", "\x1b[?25h"
    assert file.getvalue().rindex(shown) > file.getvalue().index(hidden)


def test_nothing_is_shown_before_training():
    bar, file = bar_at(0)
    with pytest.raises(KeyError), bar:
        raise KeyError
    assert file.getvalue() == ""


def test_steps_must_be_positive():
    with pytest.raises(ValueError, match="`steps` must be a positive integer"):
        ProgressBar(0)
