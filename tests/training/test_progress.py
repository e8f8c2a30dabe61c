"""The bar, or lines in its place, and the log, by a clock for tests."""

import io
import json
import math
import os
import re
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console

from keras_attnvariants.training import ProgressBar
from keras_attnvariants.training import TimeLimit
from keras_attnvariants.training import progress
from keras_attnvariants.training.callbacks import Progress
from keras_attnvariants.training.progress import JsonLinesLogger
from keras_attnvariants.utils.files import DamagedFolderError
from tests.training import toy


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


def told(bar, step):
    """The share that a bar shows after an update, and the time left."""
    update(bar, step)
    [task] = bar._bar._bar.tasks
    left = re.search(r"([0-9:]+) left", task.description)
    return task.completed, left and left[1]


def test_updates_or_time():
    limit = TimeLimit(minutes=1)
    limit.seconds = 30.0
    for step, completed in ((20, 0.5), (90, 0.9), (110, 1.0)):
        assert told(bar_at(0, limit)[0], step)[0] == completed
    assert told(bar_at(0)[0], 20)[0] == 0.2


def test_time_left_is_that_to_the_end_of_updates_or_time(clock):
    limit = TimeLimit(minutes=10)
    bar, _ = bar_at(0, limit)
    # Compiled in a minute, which says nothing about the others.
    assert told(bar, 1)[1] is None
    clock.now += 20.0
    assert told(bar, 11)[1] == "2:58"  # two seconds each, 89 to go
    clock.now += 530.0
    limit.seconds = 550.0
    assert told(bar, 12)[1] == "0:51"
    limit.seconds = 700.0
    assert told(bar, 13)[1] == "0:00"


def test_a_resumed_run_is_as_fast_as_it_is_now(clock):
    bar, _ = bar_at(0)
    update(bar, 51)
    clock.now += 5.0
    assert told(bar, 56)[1] == "0:44"


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
        bar._bar._bar.refresh()
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", file.getvalue())
    lines = re.split(r"[\r\n]+", plain)
    assert max(map(len, lines)) == 80  # the bar takes what is left
    assert any("12%, update 12,445,678" in line and "left" in line for line in lines)


def test_the_terminal_is_restored_after_an_error():
    bar, file = bar_at(40)
    with pytest.raises(KeyError), bar:
        bar.on_train_begin()
        raise KeyError
    hidden, shown = "\x1b[?25l", "\x1b[?25h"
    assert file.getvalue().rindex(shown) > file.getvalue().index(hidden)
    # The bar is erased: the next output has a line of its own.
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


def test_the_bar_of_a_run_knows_its_limit_of_time(tmp_path, clock, capsys):
    limit = TimeLimit(minutes=0.5)
    limit.seconds = 15.0
    toy.run(tmp_path, toy.toy_config(), callbacks=[limit], verbose="auto")
    assert capsys.readouterr().err.startswith("50%, update 1, ")


def test_log_has_a_line_every_few_updates_and_after_each_period(tmp_path):
    toy.run(tmp_path, toy.toy_config(steps=10))
    records = toy.log(tmp_path)
    assert [(record["event"], record["step"]) for record in records] == [
        ("updates", 4),
        ("updates", 8),
        ("period", 8),
        ("updates", 10),
        ("period", 10),
        ("averaged", 10),
    ]
    update, period = records[1], records[2]
    assert update["tokens_per_second"] > 0 and update["loss"] == period["loss"]
    assert update["learning_rate"] == pytest.approx(9e-3)  # of the next update
    labels = [toy.batch(5, number)[2] for number in range(8)]
    assert update["tokens"] == sum(float(np.sum(weights)) for weights in labels)
    assert {"val_loss", "val_perplexity", "val_bleu"} <= period.keys()
    seconds = [record["seconds"] for record in records]
    assert seconds == sorted(seconds)


def test_log_writes_null_for_numbers_that_json_lacks(tmp_path):
    logger = JsonLinesLogger(tmp_path / "log.jsonl", Progress(step=3), log_every=1)
    logger.write("period", {"val_perplexity": math.inf, "val_loss": 1.5})
    (record,) = toy.log(tmp_path)
    assert record["val_perplexity"] is None and record["val_loss"] == 1.5


def test_log_is_cut_back_to_the_state_it_resumes_from(tmp_path):
    logger = JsonLinesLogger(tmp_path / "log.jsonl", Progress(step=3), log_every=1)
    logger.write("updates", {"loss": 1.0})
    state = json.loads(json.dumps(logger.get_state()))
    logger.write("updates", {"loss": 2.0})
    resumed = JsonLinesLogger(tmp_path / "log.jsonl", Progress(step=3), log_every=1)
    resumed.set_state(state)
    resumed.write("updates", {"loss": 3.0})
    assert [record["loss"] for record in toy.log(tmp_path)] == [1.0, 3.0]


@pytest.mark.parametrize(
    "line",
    [
        "[" * 100_000,
        '{"event": "period", "step": 8, "val_loss": "low"}',
        '{"event": "period", "step": 8, "val_loss": [1.5]}',
        '{"event": "period", "step": "8"}',
        '{"event": 8, "step": 8}',
        "[]",
        "period",
    ],
)
def test_a_line_that_is_not_a_record_is_named(tmp_path, line):
    log = tmp_path / "log.jsonl"
    log.write_text(f'{{"event": "updates", "step": 4, "loss": null}}\n{line}\n')
    with pytest.raises(ValueError, match=f"^Line 2 of {log} is not a record") as caught:
        progress.read_log(log)
    assert "\n" not in str(caught.value)


def test_a_log_that_is_larger_than_that_of_any_run_is_not_read(tmp_path):
    log = tmp_path / "log.jsonl"
    log.touch()
    os.truncate(log, 3 * 10**9)  # takes no place on the disk
    with pytest.raises(DamagedFolderError, match=f"^log.jsonl is larger.*: {log}$"):
        progress.read_log(log)
