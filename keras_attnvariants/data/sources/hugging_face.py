"""Corpora of the Hugging Face hub, streamed into the cache by the library `datasets`.

That library runs no code of a data set: it only reads data files.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from keras_attnvariants.data.sources.download import FetchError
from keras_attnvariants.data.sources.download import fetch_errors
from keras_attnvariants.data.text_files import write_splits
from keras_attnvariants.utils.caches import cached_folder
from keras_attnvariants.utils.folders import FolderWriter
from keras_attnvariants.utils.machine import check_extra

PREFIX = "hf:"
# A part of a name on a hub.
PART = r"[A-Za-z0-9](?:[\w-]|\.(?!\.))*"
_SPEC = re.compile(
    rf"hf:(?P<name>{PART}(?:/{PART})?)(?::(?P<config>{PART}))?"
    rf"(?:@(?P<revision>{PART}(?:/{PART})*))?",
    re.ASCII,
)
_COMMIT = re.compile("[0-9a-f]{40}")
# The column of data sets of translations: a text by language in each row.
_TRANSLATION = "translation"


def fetch(spec: str, languages: tuple[str, str], cache: Path) -> tuple[Path, str]:
    """The folder of a corpus of the hub, fetched the first time.

    Args:
        spec: `hf:NAME`, with `:CONFIG` if the data set has several, and with
            `@REVISION` for a revision other than the newest. With a full commit hash, a
            cached corpus is used without asking the hub.
        languages: codes of the languages, which are keys of its column `translation`,
            or names of columns.
        cache: folder of all caches.

    Returns:
        The folder, and `NAME@COMMIT`.

    Raises:
        ValueError: it is no such name, or the library is not installed.
        FetchError: the hub cannot be reached, has no such corpus, or one without these
            languages.
    """
    parts = _SPEC.fullmatch(spec)
    if parts is None:
        raise ValueError(
            "A corpus of the Hugging Face hub must be hf:NAME, hf:NAME:CONFIG, or one "
            f"of these with @REVISION. Received: {spec!r}"
        )
    name, config, revision = parts.groups()
    check_extra(f"A corpus at {PREFIX}", "datasets", ["datasets"])
    commit = revision
    if revision is None or not _COMMIT.fullmatch(revision):
        from huggingface_hub import HfApi

        with fetch_errors(f"{spec} cannot be fetched"):
            commit = str(HfApi().dataset_info(name, revision=revision).sha)
    pair = "-".join(sorted(languages))
    folder = cache / "sources" / "hf" / name / f"{config or 'default'}-{pair}-{commit}"

    def write(into: FolderWriter) -> None:
        import datasets

        print(f"Fetching {spec}, revision {commit}", file=sys.stderr)
        with fetch_errors(f"{spec} cannot be fetched"):
            # For a bare name, a folder of that name would be read instead.
            address = f"hf://datasets/{name}"
            splits = datasets.load_dataset(
                address, config, revision=commit, streaming=True
            )
            for split, rows in splits.items():
                lines = lines_of(f"{spec}, split {split}", split, rows, languages)
                write_splits(into.path, lines)

    return cached_folder(folder, write), f"{name}@{commit}"


def lines_of(
    what: str,
    split: str,
    rows: Iterable[Mapping[str, Any]],
    languages: tuple[str, str],
) -> Iterator[tuple[str, str, str]]:
    """Split, language and text of each side of the rows; `""` for one without a text.

    Raises:
        FetchError: a row lacks one of the languages.
    """
    for row in rows:
        texts = row.get(_TRANSLATION, row)
        texts = texts if isinstance(texts, Mapping) else row
        if not {*languages} <= {*texts}:
            raise FetchError(
                f"{what} must have the languages {' and '.join(languages)}, as "
                f"columns or in a column {_TRANSLATION!r}. "
                f"Received: {', '.join(map(str, texts))}"
            )
        for language in languages:
            yield split, language, str(texts[language] or "")
