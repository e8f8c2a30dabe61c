"""WMT 2014 and 2016: the news translation tasks (Bojar et al., 2014 and 2016)."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from keras_attnvariants.data.registry import register_corpus
from keras_attnvariants.data.sources.archives import member_lines
from keras_attnvariants.data.sources.archives import segments
from keras_attnvariants.data.sources.archives import write_lines
from keras_attnvariants.data.sources.download import download

_LICENCE = "free for research; see the site"


@dataclass(frozen=True)
class _Part:
    """A file of a campaign: `{other}` stands for the language beside English."""

    url: str
    source: str
    english: str
    checksum: str | None = None
    megabytes: int = 500

    @classmethod
    def text(cls, url: str, stem: str, megabytes: int = 500) -> _Part:
        return cls(url, f"{stem}.{{other}}", f"{stem}.en", megabytes=megabytes)

    @classmethod
    def test_set(cls, name: str, other: str) -> _Part:
        """The test set that sacreBLEU has under this name, from there into English."""
        from sacrebleu.dataset import DATASETS

        found = DATASETS[name]
        source, english = found.langpairs[f"{other}-en"]
        [url], [md5] = found.data or [], found.md5 or []
        return cls(url, source, english, f"md5:{md5}", megabytes=100)

    def fetch(
        self, other: str, into: Path, downloads: Path
    ) -> dict[str, tuple[Path, str]]:
        """Returns archive and member by language."""
        url = self.url.format(other=other)
        archive = download(
            url, into, downloads, self.checksum, megabytes=self.megabytes
        )
        return {
            other: (archive, self.source.format(other=other)),
            "en": (archive, self.english.format(other=other)),
        }


_EUROPARL_7 = _Part.text(
    "https://www.statmt.org/europarl/v7/{other}-en.tgz", "europarl-v7.{other}-en"
)
_COMMON_CRAWL = _Part.text(
    "https://www.statmt.org/wmt13/training-parallel-commoncrawl.tgz",
    "commoncrawl.{other}-en",
    megabytes=2000,
)
_NEWS_COMMENTARY_9 = _Part.text(
    "https://www.statmt.org/wmt14/training-parallel-nc-v9.tgz",
    "news-commentary-v9.{other}-en",
)
_EUROPARL_8 = _Part.text(
    "https://data.statmt.org/wmt16/translation-task/training-parallel-ep-v8.tgz",
    "europarl-v8.{other}-en",
)
_SETIMES = _Part.text(
    "https://object.pouta.csc.fi/OPUS-SETIMES/v2/moses/en-{other}.txt.zip",
    "SETIMES.en-{other}",
)


@register_corpus(
    "wmt14",
    languages=("de", "en", "fr"),
    origin="https://www.statmt.org/wmt14/translation-task.html",
    megabytes=1200,
    digests=("first use", "md5"),
    licence=_LICENCE,
)
def write_wmt14(into: Path, languages: tuple[str, str], downloads: Path) -> None:
    """Writes Europarl 7, Common Crawl and News Commentary 9; newstest 2013, 2014."""
    train = (_EUROPARL_7, _COMMON_CRAWL, _NEWS_COMMENTARY_9)
    _write(into, languages, downloads, train, "wmt13", "wmt14/full")


@register_corpus(
    "wmt16",
    languages=("en", "ro"),
    origin="https://www.statmt.org/wmt16/translation-task.html",
    megabytes=300,
    digests=("first use", "md5"),
    licence=_LICENCE,
)
def write_wmt16(into: Path, languages: tuple[str, str], downloads: Path) -> None:
    """Writes Europarl 8 and SETimes 2; newsdev 2016 and newstest 2016."""
    train = (_EUROPARL_8, _SETIMES)
    _write(into, languages, downloads, train, "wmt16/dev", "wmt16")


def _write(
    into: Path,
    languages: tuple[str, str],
    downloads: Path,
    train: Iterable[_Part],
    validation: str,
    test: str,
) -> None:
    """Writes all splits; those for training one after another into one file.

    `validation` and `test` are names that sacreBLEU gives to test sets.
    """
    if "en" not in languages:
        raise ValueError(
            f"One of the two languages must be English. Received: {languages}"
        )
    other = next(language for language in languages if language != "en")
    with tempfile.TemporaryDirectory(dir=into) as folder:
        parts = [part.fetch(other, Path(folder), downloads) for part in train]
        for language in languages:
            lines = (line for part in parts for line in member_lines(*part[language]))
            write_lines(into / f"train.{language}", lines)
        for split, name in (("validation", validation), ("test", test)):
            part = _Part.test_set(name, other)
            for language, member in part.fetch(other, Path(folder), downloads).items():
                write_lines(into / f"{split}.{language}", segments(*member))
