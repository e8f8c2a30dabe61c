"""The bar shows whichever of updates and time is further on, and where it cannot be
drawn, lines do."""

import io
import re
from types import SimpleNamespace

import pytest
from rich.console import Console

from keras_attnvariants.training import ProgressBar
from keras_attnvariants.training import TimeLimit
from keras_attnvariants.training import progress
from keras_attnvariants.training.progress import with_progress_bar
from tests.training import toy


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still unless it is moved."""
    clock = SimpleNamespace(now=1000.0)
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock.now)
    return clock


def bar_at(step, limit=None, terminal=True, steps=100):
    file = io.StringIO()
    console = Console(
        file=file, force_terminal=terminal, force_interactive=terminal, width=80
    )
    bar = ProgressBar(steps, limit, console)
    bar.set_model(SimpleNamespace(optimizer=SimpleNamespace(iterations=step)))
    return bar, file


def update(bar, step, **logs):
    bar.model.optimizer.iterations = step
    bar.on_train_batch_end(0, logs)


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


def test_time_left_is_that_to_the_end_of_updates_or_time(clock):
    limit = TimeLimit(minutes=10)
    bar, _ = bar_at(0, limit)
    update(bar, 1)  # compiled in a minute, which tells nothing about the others
    assert bar.seconds_left is None
    clock.now += 20.0
    update(bar, 11)  # two seconds each, 89 to go
    assert bar.seconds_left == pytest.approx(178.0)
    limit.seconds = 550.0
    assert bar.seconds_left == pytest.approx(50.0)
    limit.seconds = 700.0
    assert bar.seconds_left == 0.0


def test_a_resumed_run_is_as_fast_as_it_is_now(clock):
    bar, _ = bar_at(0)
    update(bar, 51)
    clock.now += 5.0
    update(bar, 56)
    assert bar.seconds_left == pytest.approx(44.0)


def test_tokens_per_second_are_those_of_the_period(clock):
    bar, file = bar_at(0, terminal=False)
    bar.on_epoch_begin(0)
    update(bar, 1, loss=2.5, tokens=500.0)  # compiles
    clock.now += 10.0
    update(bar, 2, loss=2.5, tokens=2500.0)
    clock.now += 90.0  # the validation
    bar.on_epoch_end(0, {"loss": 2.5, "val_loss": 2.25, "val_bleu": 1.5})
    assert file.getvalue().endswith(
        "update 2: loss 2.500, val_loss 2.250, val_bleu 1.50, 200 tokens/s\n"
    )
    bar.on_epoch_begin(1)
    update(bar, 3, loss=2.5, tokens=500.0)
    clock.now += 1.0
    update(bar, 4, loss=2.5, tokens=1500.0)
    bar.on_epoch_end(1, {"loss": 2.25})
    assert file.getvalue().endswith("update 4: loss 2.250, 1,000 tokens/s\n")


def test_a_file_gets_a_line_a_minute_without_control_codes(clock):
    bar, file = bar_at(0, terminal=False, steps=10_000)
    with bar:
        bar.on_train_begin()
        bar.on_epoch_begin(0)
        for step in range(1, 1502):
            clock.now += 0.125
            update(bar, step, loss=2.5, tokens=10.0 * step)
        bar.on_test_begin()
        bar.on_epoch_end(0, {"loss": 2.5, "tokens": 9.0, "val_loss": 2.25})
        bar.on_train_end()
    lines = file.getvalue().splitlines()
    assert lines == [
        "0%, update 1, loss 2.50",
        "5%, update 481, loss 2.50, 80 tokens/s, 19:50 left",
        "10%, update 961, loss 2.50, 80 tokens/s, 18:50 left",
        "14%, update 1,441, loss 2.50, 80 tokens/s, 17:50 left",
        "update 1,501: loss 2.500, val_loss 2.250, 80 tokens/s",
    ]


def test_everything_fits_into_eighty_columns(clock):
    bar, file = bar_at(0, steps=99_999_999)
    with bar:
        bar.on_train_begin()
        bar.on_epoch_begin(0)
        update(bar, 12_345_678, loss=1234.5, tokens=0.0)
        clock.now += 3600.0
        update(bar, 12_445_678, loss=1234.5, tokens=1e8)
        bar.on_epoch_end(0, {"loss": 12.5, "val_loss": 12.5, "val_bleu": 99.5})
        bar._bar.refresh()
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", file.getvalue())
    lines = re.split(r"[\r\n]+", plain)
    assert max(map(len, lines)) == 80  # the bar takes what is left
    assert any("12 %, update 12,445,678" in line and "left" in line for line in lines)


def test_the_terminal_is_restored_after_an_error():
    bar, file = bar_at(40)
    with pytest.raises(KeyError), bar:
        bar.on_train_begin()
        raise KeyError
    hidden, shown = "\x1b[?25l", "\x1b[?25h"
    assert file.getvalue().rindex(shown) > file.getvalue().index(hidden)
    # The bar is erased: what is printed next has a line of its own.
    assert file.getvalue().rstrip().endswith("\x1b[2K")


def test_nothing_is_shown_before_training():
    bar, file = bar_at(0)
    with pytest.raises(KeyError), bar:
        raise KeyError
    assert file.getvalue() == ""


def test_steps_must_be_positive():
    with pytest.raises(ValueError, match="`steps` must be a positive integer"):
        ProgressBar(0)


def test_a_bar_without_steps_has_those_of_fit():
    bar, _ = bar_at(0, steps=None)
    bar.set_params({"epochs": 3, "steps": 4})
    with bar:
        bar.on_train_begin()
    assert bar.steps == 12


def test_a_run_shows_one_bar_by_itself_or_the_one_that_it_is_given(tmp_path, capsys):
    toy.run(tmp_path / "one", toy.toy_config(steps=16), verbose="auto")
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(":")[0] for line in lines if line.startswith("update ")] == [
        "update 8",
        "update 16",
    ]
    assert "\x1b" not in "".join(lines)
    file = io.StringIO()
    with ProgressBar(console=Console(file=file)) as bar:
        config = toy.toy_config(steps=16)
        toy.run(tmp_path / "given", config, callbacks=[bar], verbose="auto")
    assert "update 16: " in file.getvalue()
    assert "update 16" not in capsys.readouterr().err


def test_the_bar_of_a_run_knows_its_limit_of_time():
    limit = TimeLimit(minutes=1)
    with with_progress_bar([limit], steps=100) as [bar, _]:
        limit.seconds = 30.0
        bar.set_model(SimpleNamespace(optimizer=SimpleNamespace(iterations=20)))
        bar.on_train_batch_end(0, {"loss": 2.5})
        assert bar.completed == 0.5
