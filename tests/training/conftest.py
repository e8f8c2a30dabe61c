"""Test runs do not wait for the disk."""

import os

import pytest


@pytest.fixture(autouse=True)
def no_fsync(monkeypatch):
    """A power cut cannot be tested here, and a busy disk makes `fsync` slow."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
