"""Test runs do not wait for the disk."""

import os
import time
from types import SimpleNamespace

import pytest


@pytest.fixture(autouse=True)
def no_fsync(monkeypatch):
    """Disables `fsync`: a power cut cannot be tested here, and a busy disk is slow."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still unless it is moved."""
    clock = SimpleNamespace(now=1000.0)
    monkeypatch.setattr(time, "monotonic", lambda: clock.now)
    return clock
