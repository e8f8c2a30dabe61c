"""Consoles for progress, and times as people read them."""

import io
import sys

import pytest
from rich.console import Console

from keras_attnvariants.utils import progress


def test_standard_error_is_plain_in_a_file_and_in_ci(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("CI", raising=False)
    assert not progress.progress_console().is_terminal
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert progress.progress_console().is_interactive
    monkeypatch.setenv("CI", "true")
    assert not progress.progress_console().is_terminal


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0:00"), (59.6, "1:00"), (754, "12:34"), (3600, "1:00:00")],
)
def test_clock(seconds, text):
    assert progress.clock(seconds) == text


def test_lines_come_once_a_minute_where_there_is_no_terminal(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    for at_once, expected in ((True, "0 %\n60 %\n"), (False, "60 %\n")):
        file = io.StringIO()
        text = "{task.percentage:.0f} %"
        bar = progress.Bar(text, "", console=Console(file=file), at_once=at_once)
        for percent in (0, 30, 60, 90):
            bar.show(percent / 100, "")
            now[0] += 30
        assert file.getvalue() == expected
