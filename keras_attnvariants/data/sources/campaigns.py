"""Translation campaigns: IWSLT 2016 and 2017, WMT 2014 and 2016."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from keras_attnvariants.data.registry import FetchError
from keras_attnvariants.data.registry import register_corpus
from keras_attnvariants.data.sources.archives import member_lines
from keras_attnvariants.data.sources.archives import read_member
from keras_attnvariants.data.sources.archives import segments
from keras_attnvariants.data.sources.archives import write_lines
from keras_attnvariants.data.sources.download import download

_TED_LICENCE = "CC BY-NC-ND 4.0 (TED)"
_ORIGIN_2016 = "https://drive.google.com/uc?id=1l5y6Giag9aRPwGtuZHswh3w5v3qEz8D8"
_ORIGIN_2017 = (
    "https://raw.githubusercontent.com/hlt-mt/WIT3/"
    "e43615b79232e9cc0fccc76d90fd1c658146d29d/archive"
)
# Names that git gives to the contents of the files, in the repository of the origin.
_TRAINING_2017 = {
    "de-en": "cca21523e6528b2d7748a5c058684f406048200d",
    "en-fr": "eea4bbb9d6f95f433b56609c02b3f324857b9c9e",
    "en-zh": "5babe4b6e35b93a72353a9162124345646a767d8",
}
_TESTS_2017 = {
    "de-en": "b0034e3c957da26eaf3c573390c3fc669d509ea94c0b398889ad74bddadb4974",
    "en-de": "0c786a6905618af716da365592594473481ba9548a922506aaf6c17f1aee27e4",
    "en-fr": "755b1061ff258686d8c906525dc75035304b292320d59e5a78802b2923c204ad",
    "fr-en": "8393e55847ba750290180f1fb62684abb8c09b890c52d4ebc5c2376e8e722e93",
    "en-zh": "f1416f28a569f646be16188d7394e783fb0c87d5489a4878c74a84b565b41cd5",
    "zh-en": "73a7091216c328cca357644524efb35905f27482676ec5901797832764012a38",
}
_DEVELOPMENT_SETS = ("dev2010", *(f"tst{year}" for year in range(2010, 2016)))


@register_corpus(
    "iwslt16",
    languages=("ar", "cs", "de", "en", "fr"),
    origin=f"https://wit3.fbk.eu/2016-01 ({_ORIGIN_2016}, save as 2016-01.tgz)",
    megabytes=190,
    digests=("md5",),
    licence=_TED_LICENCE,
)
def write_iwslt16(into: Path, languages: tuple[str, str], downloads: Path) -> None:
    """Writes the talks; tst2013 is validation and tst2014 is test.

    You et al. (2020) report on tst2013.
    """
    _check_english(languages)
    pair = "-".join(languages)
    with tempfile.TemporaryDirectory(dir=into) as folder:
        archive = download(
            _ORIGIN_2016,
            Path(folder),
            downloads,
            checksum="md5:c393ed3fc2a1b0f004b3331043f615ae",
            name="2016-01.tgz",
        )
        inner = Path(folder) / "pair.tgz"
        inner.write_bytes(
            read_member(archive, f"texts/{'/'.join(languages)}/{pair}.tgz")
        )
        _write_train(into, inner, languages)
        names = {"tst2013": "validation", "tst2014": "test"}
        _write_development_sets(into, inner, languages, "IWSLT16", names)


@register_corpus(
    "iwslt17",
    languages=("de", "en", "fr", "zh"),
    origin=_ORIGIN_2017,
    megabytes=30,
    digests=("git", "sha256"),
    licence=_TED_LICENCE,
)
def write_iwslt17(into: Path, languages: tuple[str, str], downloads: Path) -> None:
    """Writes the talks; tst2015 is validation and tst2017 is test."""
    _check_english(languages)
    pair = "-".join(languages)
    with tempfile.TemporaryDirectory(dir=into) as folder:
        path = f"texts/{'/'.join(languages)}/{pair}.tgz"
        archive = download(
            f"{_ORIGIN_2017}/2017-01-trnted/{path}",
            Path(folder),
            downloads,
            checksum=f"git:{_TRAINING_2017[pair]}",
            name=f"2017-01-trnted-{pair}.tgz",
        )
        _write_train(into, archive, languages)
        names = {"tst2015": "validation"}
        _write_development_sets(into, archive, languages, "IWSLT17", names)
        # Either direction of the evaluation publishes its own source side.
        for source, target in (languages, languages[::-1]):
            archive = download(
                f"{_ORIGIN_2017}/2017-01-ted-test/texts/{source}/{target}/"
                f"{source}-{target}.tgz",
                Path(folder),
                downloads,
                checksum=f"sha256:{_TESTS_2017[f'{source}-{target}']}",
                name=f"2017-01-ted-test-{source}-{target}.tgz",
                megabytes=10,
            )
            name = f"IWSLT17.TED.tst2017.{source}-{target}.{source}.xml"
            write_lines(into / f"test.{source}", segments(archive, name))


def _check_english(languages: tuple[str, str]) -> None:
    if "en" not in languages:
        raise ValueError(
            f"One of the two languages must be English. Received: {languages}"
        )


def _write_train(into: Path, archive: Path, languages: tuple[str, str]) -> None:
    for language in languages:
        name = f"train.tags.{'-'.join(languages)}.{language}"
        write_lines(into / f"train.{language}", _untagged(member_lines(archive, name)))


def _untagged(lines: Iterator[str]) -> Iterator[str]:
    """Drops the lines that describe a talk: `<title>…</title>` and so on."""
    return (line.strip() for line in lines if not line.lstrip().startswith("<"))


def _write_development_sets(
    into: Path,
    archive: Path,
    languages: tuple[str, str],
    campaign: str,
    names: dict[str, str],
) -> None:
    """Writes the sets that there are; `names` are those that must exist, renamed."""
    pair = "-".join(languages)
    for name in _DEVELOPMENT_SETS:
        for language in languages:
            member = f"{campaign}.TED.{name}.{pair}.{language}.xml"
            try:
                lines = segments(archive, member)
            except FetchError:
                # Not every pair of languages has every one of these sets.
                if name in names:
                    raise
                break
            write_lines(into / f"{names.get(name, name)}.{language}", lines)


_WMT_LICENCE = "free for research; see the site"


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
    licence=_WMT_LICENCE,
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
    licence=_WMT_LICENCE,
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
    _check_english(languages)
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
