"""Names for what is made from files, and the split that a text belongs to."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def fingerprint(files: Iterable[Path], *settings: Any) -> str:
    """A name for what is made from files, by their names and content alone."""
    digests = []
    for path in files:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        digests.append((path.name, digest))
    text = json.dumps([digests, settings])
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]


def held_out_split(key: str) -> str:
    """Returns "train", or for 3 % each "validation" or "test", from a stable hash."""
    place = int.from_bytes(hashlib.sha256(key.encode("utf-8")).digest()[:8]) % 100
    if place < 3:
        return "validation"
    return "test" if place < 6 else "train"
