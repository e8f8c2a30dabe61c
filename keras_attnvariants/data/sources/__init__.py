"""Corpora that are fetched by name: those of `corpora.toml`, and others."""

from __future__ import annotations

import sys
import tempfile
import tomllib
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from keras_attnvariants.data.sources.archives import NoMemberError
from keras_attnvariants.data.sources.archives import member_lines
from keras_attnvariants.data.sources.archives import read_member
from keras_attnvariants.data.sources.bible import read_chapters
from keras_attnvariants.data.sources.download import FetchError
from keras_attnvariants.data.sources.download import download_file
from keras_attnvariants.data.splits import SPLITS
from keras_attnvariants.data.text_files import held_out_split
from keras_attnvariants.data.text_files import write_splits
from keras_attnvariants.utils.caches import cached_folder
from keras_attnvariants.utils.checks import did_you_mean
from keras_attnvariants.utils.folders import FolderWriter

# Writes a corpus; see `RegisteredCorpus.write`.
Write = Callable[[Path, tuple[str, str], Path], None]

# How a file is verified without a digest in this package: by the sha256 of the first
# download.
FIRST_USE = "first use"

_CORPORA: dict[str, RegisteredCorpus] = {}


@dataclass(frozen=True)
class RegisteredCorpus:
    """A corpus that can be fetched by its name.

    Attributes:
        name: The name that users give.
        languages: Codes of its languages; any two of them can be asked for.
        origin: Where it comes from: an https address or a package.
        megabytes: Approximate size of the download.
        licence: The terms, as far as the origin states them.
        write: `write(into, languages, downloads)` fetches the corpus and writes
            `<split>.<language>` files, plain or `.gz`, for the two languages into
            the folder `into`. Archives already in the folder `downloads` are used.
        digests: Ways in which its files are checked, one or more of `"sha256"`,
            `"md5"`, `"git"` (the id of its blob, a SHA-1) and `"first use"`.

    Example:

    ```python
    def write(into, languages, downloads):
        for language in languages:
            shutil.copy(f"/data/talks.{language}", into / f"train.{language}")

    corpus = kav.data.RegisteredCorpus(
        "talks", ("de", "en"), "/data", 3, "our own", write
    )
    kav.data.register_corpus(corpus)
    ```
    """

    name: str
    languages: tuple[str, ...]
    origin: str
    megabytes: int
    licence: str
    write: Write
    digests: tuple[str, ...] = (FIRST_USE,)


def register_corpus(corpus: RegisteredCorpus) -> None:
    """Makes a corpus known by its name to `load_corpus` and to all commands."""
    _CORPORA[corpus.name] = corpus


def corpus_names() -> list[str]:
    """Returns the names of all registered corpora."""
    return sorted(_CORPORA)


def get(name: str) -> RegisteredCorpus:
    """Returns a registered corpus.

    Raises:
        ValueError: If the name is unknown; the message has the nearest names.
    """
    if name not in _CORPORA:
        raise ValueError(
            "`spec` must be a folder, a TSV file or a registered corpus. "
            f"{did_you_mean(name, corpus_names())} Received: {name!r}"
        )
    return _CORPORA[name]


def fetch(name: str, languages: tuple[str, str], cache: Path) -> Path:
    """Returns the folder of a registered corpus, fetching it the first time.

    Raises:
        ValueError: If the name is unknown or the corpus lacks a language.
        FetchError: If it cannot be fetched, or is not what was registered.
    """
    corpus = get(name)
    if not set(languages) <= set(corpus.languages):
        raise ValueError(
            f"Corpus {name!r} has the languages {', '.join(corpus.languages)}. "
            f"Received: {languages[0]!r} to {languages[1]!r}"
        )
    first, second = sorted(languages)
    folder = cache / "sources" / f"{name}-{first}-{second}"
    downloads = cache / "downloads" / name

    def write(into: FolderWriter) -> None:
        print(
            f"Fetching {name} (about {corpus.megabytes:,} MB) from {corpus.origin}",
            file=sys.stderr,
        )
        corpus.write(into.path, (first, second), downloads)

    try:
        return cached_folder(folder, write)
    except FetchError as error:
        raise FetchError(
            f"Cannot fetch corpus {name!r}: {error} You can download that file "
            f"yourself and put it into {downloads}, or give, instead of the name, a "
            f"folder with train.{first}, train.{second} and so on. "
            f"Received: {name!r}"
        ) from error


def _write(
    entry: Mapping[str, Any], into: Path, languages: tuple[str, str], downloads: Path
) -> None:
    """Writes a corpus of the table; see `RegisteredCorpus.write`."""
    if entry.get("english") and "en" not in languages:
        raise ValueError(
            f"One of the two languages must be English. Received: {languages}"
        )
    for file in entry["files"]:
        if not set(languages) <= set(file.get("languages", languages)):
            continue
        with tempfile.TemporaryDirectory(dir=into) as folder:
            words = [
                _placeholders(entry["origin"], languages, side) for side in languages
            ]
            first = second = _archive(file, words[0], Path(folder), downloads)
            if "{language}" in file["url"]:
                second = _archive(file, words[1], Path(folder), downloads)
            if "bible" in file:
                chapters = read_chapters(first, languages)
                write_held_out(into, languages, chapters)
            elif "held_out" in file:
                members = [file["held_out"].format_map(w) for w in words]
                sides = map(member_lines, (first, second), members)
                pairs = ((texts[0], texts) for texts in zip(*sides, strict=True))
                write_held_out(into, languages, pairs)
            else:
                _write_splits(file["splits"], into, words, (first, second))


def _placeholders(
    origin: str, languages: tuple[str, str], language: str
) -> dict[str, str]:
    """Values for the names in braces in the table, for one side."""
    first, second = languages
    return {
        "origin": origin,
        "first": first,
        "second": second,
        "pair": f"{first}-{second}",
        "language": language,
        "opposite": second if language == first else first,
        "other": second if first == "en" else first,
        "role": "ref" if language == "en" else "src",
    }


def _archive(
    file: Mapping[str, Any], words: Mapping[str, str], folder: Path, downloads: Path
) -> Path:
    """The file that has the members, downloaded if need be."""
    url = file["url"].format_map(words)
    name = file.get("name", url.rsplit("/", 1)[-1]).format_map(words)
    checksum = file["checksums"][name] if "checksums" in file else None
    megabytes = file.get("megabytes", 500)
    path = download_file(url, folder, downloads, checksum, name, megabytes)
    if "inside" not in file:
        return path
    inner = folder / "inner"
    inner.write_bytes(read_member(path, file["inside"].format_map(words)))
    return inner


def _write_splits(
    splits: Mapping[str, str],
    into: Path,
    words: Sequence[Mapping[str, str]],
    archives: Sequence[Path],
) -> None:
    """Adds the lines of members to splits; sets that an archive lacks are left out."""
    for split, member in splits.items():
        try:
            for side, archive in zip(words, archives, strict=True):
                lines = member_lines(archive, member.format_map(side))
                language = side["language"]
                write_splits(into, ((split, language, line) for line in lines))
        except NoMemberError:
            if split in SPLITS:
                raise


def write_held_out(
    into: Path,
    languages: tuple[str, str],
    pairs: Iterable[tuple[str, Sequence[str]]],
) -> None:
    """Writes pairs of texts into the split that the hash of their key gives."""
    lines = (
        (held_out_split(key), language, text)
        for key, texts in pairs
        for language, text in zip(languages, texts, strict=True)
    )
    write_splits(into, lines)


def _register_table() -> None:
    """Registers the corpora of `corpora.toml`."""
    text = Path(__file__).with_name("corpora.toml").read_text("utf-8")
    for name, entry in tomllib.loads(text).items():
        digests = {
            checksum.partition(":")[0]
            for file in entry["files"]
            for checksum in file.get("checksums", {"": FIRST_USE}).values()
        }
        corpus = RegisteredCorpus(
            name=name,
            languages=tuple(entry["languages"]),
            origin=entry["origin"],
            megabytes=entry["megabytes"],
            licence=entry["licence"],
            write=partial(_write, entry),
            digests=tuple(sorted(digests)),
        )
        register_corpus(corpus)


_register_table()
