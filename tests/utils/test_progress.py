"""Consoles for progress, and times as people read them."""

import sys

import pytest

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
