"""The registry of corpora that can be fetched by name."""

from __future__ import annotations

import sys
from collections.abc import Callable
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from keras_attnvariants.utils.caches import cached_folder
from keras_attnvariants.utils.checks import did_you_mean
from keras_attnvariants.utils.folders import FolderWriter

# Writes a corpus; see `RegisteredCorpus.write`.
Write = Callable[[Path, tuple[str, str], Path], None]

# The files of a corpus are compared with a digest in this package, the name that git
# gives to a content (a SHA-1), or the sha256 of the file that came first.
DIGESTS = ("sha256", "md5", "git", "first use")

_CORPORA: dict[str, RegisteredCorpus] = {}


class FetchError(OSError):
    """A registered corpus could not be fetched; the message says what to do."""


@dataclass(frozen=True)
class RegisteredCorpus:
    """A corpus that can be fetched by its name.

    Attributes:
        name: What users call it.
        languages: Codes of its languages; any two of them can be asked for.
        origin: Where it comes from: an https address or a package.
        megabytes: Approximate size of the download.
        digests: How its files are checked, one or more of `DIGESTS`.
        licence: The terms, as far as the origin states them.
        write: `write(into, languages, downloads)` fetches the corpus and writes
            `<split>.<language>` files, plain or `.gz`, for the two languages into
            the folder `into`. Archives already in the folder `downloads` are used.
    """

    name: str
    languages: tuple[str, ...]
    origin: str
    megabytes: int
    digests: tuple[str, ...]
    licence: str
    write: Write


def register_corpus(
    name: str,
    languages: Iterable[str],
    origin: str,
    megabytes: int,
    licence: str,
    digests: Iterable[str] = ("first use",),
) -> Callable[[Write], Write]:
    """Decorates the function that writes a corpus, see `RegisteredCorpus.write`."""

    def register(write: Write) -> Write:
        _CORPORA[name] = RegisteredCorpus(
            name,
            tuple(languages),
            origin,
            megabytes,
            tuple(digests),
            licence,
            write,
        )
        return write

    return register


def names() -> list[str]:
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
            f"{did_you_mean(name, names())} Received: {name!r}"
        )
    return _CORPORA[name]


def fetch(name: str, languages: tuple[str, str], cache: Path) -> Path:
    """Returns the folder of a registered corpus, fetching it the first time.

    Raises:
        ValueError: If the name is unknown or the corpus lacks a language.
        FetchError: If it cannot be fetched, or is not what was registered.
    """
    corpus = get(name)
    for language in languages:
        if language not in corpus.languages:
            raise ValueError(
                f"Corpus {name!r} has the languages {', '.join(corpus.languages)}. "
                f"Received: {languages[0]!r} to {languages[1]!r}"
            )
    first, second = sorted(languages)
    pair = first, second
    folder = cache / "sources" / f"{name}-{'-'.join(pair)}"
    downloads = cache / "downloads" / name

    def write(into: FolderWriter) -> None:
        print(
            f"Fetching {name} (about {corpus.megabytes:,} MB) from {corpus.origin}",
            file=sys.stderr,
        )
        corpus.write(into.path, pair, downloads)

    try:
        return cached_folder(folder, write)
    except FetchError as error:
        raise FetchError(
            f"Cannot fetch corpus {name!r}: {error} You can download that file "
            f"yourself and put it into {downloads}, or give, instead of the name, a "
            f"folder with train.{pair[0]}, train.{pair[1]} and so on. "
            f"Received: {name!r}"
        ) from error
