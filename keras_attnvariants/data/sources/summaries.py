"""Corpora of summaries in the formats in which they are distributed.

Gigaword is an archive with files such as `train.article.txt` and `train.title.txt`.
CNN-DM is an archive with a file for each story, and `@highlight` before each sentence
of its summary. These and other corpora also come as JSON lines. All may be in a folder.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from keras_attnvariants.data.sources.archives import TARS
from keras_attnvariants.data.sources.archives import archive_errors
from keras_attnvariants.data.sources.archives import members_of
from keras_attnvariants.data.splits import Conversion
from keras_attnvariants.data.text_files import held_out_split
from keras_attnvariants.data.text_files import write_splits
from keras_attnvariants.utils.lines import text_lines
from keras_attnvariants.utils.lines import well_formed

SIDES = ("source", "target")
ARCHIVES = (*TARS, ".zip")
_NAMES = r"(?:^|[^a-z])(train|valid|validation|dev|val|test)"
_SPLIT = re.compile(rf"{_NAMES}(?![a-z])")
_SIDES = r"\.(?:(article|src|source)|(title|tgt|target))"
_LINES = re.compile(rf"{_SIDES}(?:(?:\.filter)?\.txt)?(?:\.gz)?$")
_JSON = re.compile(r"\.jsonl?(\.gz)?$")
# In a folder, there may be other JSON, such as several references.
_JSON_SPLIT = re.compile(rf"{_NAMES}{_JSON.pattern}")
_STORY = re.compile(r"\.story$")
# The keys of a document and its summary in JSON lines.
KEYS = (("article", "highlights"), ("document", "summary"), SIDES)


def conversion(path: Path) -> Conversion | None:
    """The conversion of a corpus in one of these formats; `None` for other corpora."""
    is_folder = path.is_dir()
    forms = (_LINES, _JSON_SPLIT if is_folder else _JSON, _STORY)
    files = [
        file
        for file in (sorted(path.glob("[!.]*")) if is_folder else [path])
        if file.name.endswith(ARCHIVES) or any(x.search(file.name) for x in forms)
    ]
    return Conversion(files, partial(write_summaries, files)) if files else None


def is_text(name: str) -> bool:
    """Whether a file of this name, which is not hidden, has documents or summaries."""
    is_hidden = name.rpartition("/")[2].startswith(".")
    return not is_hidden and any(f.search(name) for f in (_LINES, _JSON, _STORY))


def write_summaries(inputs: Iterable[Path], into: Path) -> None:
    """Writes `<split>.source` and `<split>.target`, one document or summary per line.

    Members of archives are read in their order, and never unpacked. Stories, and JSON
    lines in a file that names no split, are assigned by a hash.

    Raises:
        FetchError: an archive is broken.
    """
    lines = (
        (split, SIDES[side], text.strip())
        for path in inputs
        for split, side, text in read(path)
    )
    write_splits(into, lines)


def read(path: Path) -> Iterator[tuple[str, int, str]]:
    """The texts in an archive or a plain file, as `texts` gives them.

    Raises:
        FetchError: the archive is broken, or packed too tightly.
    """
    if path.name.endswith(ARCHIVES):
        with archive_errors(path):
            for name, stream in members_of(path, is_text):
                yield from texts(name, stream)
    else:
        with archive_errors(path), path.open("rb") as file:
            yield from texts(path.name, file)


def texts(name: str, stream: Any) -> Iterator[tuple[str, int, str]]:
    """The texts of a file: their split, their side by number, and the text."""
    base = name.rpartition("/")[2]
    named = _SPLIT.search(base)
    split = named[1] if named else None
    if _STORY.search(base):
        split = held_out_split(base)
        for side, text in enumerate(story(stream.read().decode("utf-8", "replace"))):
            yield split, side, text
        return
    lines = text_lines(gzip.open(stream) if base.endswith(".gz") else stream)
    if form := _LINES.search(base):
        side = int(form[1] is None)
        yield from ((split or "train", side, line) for line in lines)
        return
    for line in lines:
        pair = json_pair(line)
        for side, text in enumerate(pair):
            yield split or held_out_split(pair[0]), side, text


def story(text: str) -> tuple[str, str]:
    """The document of a story, and its summary with a full stop after each sentence.

    >>> story("Rain fell.\\n\\nIt stopped.\\n\\n@highlight\\n\\nRain fell\\n")
    ('Rain fell. It stopped.', 'Rain fell.')
    """
    body, *highlights = (" ".join(part.split()) for part in text.split("@highlight"))
    ended = [line if line[-1] in ".!?" else f"{line}." for line in highlights if line]
    return body, " ".join(ended)


def json_pair(line: str) -> tuple[str, str]:
    """The document and the summary in a line of JSON; empty ones if it has none.

    A document may be a list of sentences, and a summary a list of references, of which
    the first counts. Anything that is not text counts as empty.

    >>> json_pair('{"document": ["One.", null], "summary": null}')
    ('One.', '')
    """
    with suppress(ValueError, RecursionError):
        row = json.loads(line)
        for source, target in KEYS:
            if isinstance(row, dict) and {source, target} <= row.keys():
                document, summaries = _strings(row[source]), _strings(row[target])
                return " ".join(document), "".join(summaries[:1])
    return "", ""


def _strings(value: Any) -> list[str]:
    """A text, or those in a list, with U+FFFD for halves of surrogate pairs."""
    texts = value if isinstance(value, list) else [value]
    return [well_formed(text) for text in texts if isinstance(text, str)]
