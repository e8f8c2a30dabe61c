"""Files and folders that appear whole or not at all."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Iterable
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """Gives a temporary folder that becomes `folder` at the end, or vanishes."""
    partial = folder.with_name(f".{folder.name}.{uuid.uuid4().hex[:8]}")
    partial.mkdir(parents=True)
    try:
        yield partial
        try:
            os.replace(partial, folder)
        except OSError:
            # Another process may have been faster; its files are the same.
            if not folder.is_dir():
                raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def fingerprint(files: Iterable[Path], *settings) -> str:
    """Names what is made from files of this content, wherever they are."""
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
