"""Where caches are."""

import os
from pathlib import Path


def default_cache() -> Path:
    """The folder of all caches: `KAV_CACHE`, or one in the home of the user."""
    if folder := os.environ.get("KAV_CACHE"):
        return Path(folder)
    return (
        Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        / "keras_attnvariants"
    )
