"""IWSLT 2016 and 2017: transcribed and translated TED talks (Cettolo et al., 2012)."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from keras_attnvariants.data.registry import FetchError
from keras_attnvariants.data.registry import register_corpus
from keras_attnvariants.data.sources.archives import member_lines
from keras_attnvariants.data.sources.archives import read_member
from keras_attnvariants.data.sources.archives import segments
from keras_attnvariants.data.sources.archives import write_lines
from keras_attnvariants.data.sources.download import download

_LICENCE = "CC BY-NC-ND 4.0 (TED)"
_ORIGIN_2016 = "https://drive.google.com/uc?id=1l5y6Giag9aRPwGtuZHswh3w5v3qEz8D8"
_ORIGIN_2017 = "https://raw.githubusercontent.com/hlt-mt/WIT3/master/archive"
_DEVELOPMENT_SETS = ("dev2010", *(f"tst{year}" for year in range(2010, 2016)))


@register_corpus(
    "iwslt16",
    languages=("ar", "cs", "de", "en", "fr"),
    origin=f"https://wit3.fbk.eu/2016-01 ({_ORIGIN_2016}, save as 2016-01.tgz)",
    megabytes=190,
    licence=_LICENCE,
)
def write_iwslt16(into: Path, languages: tuple[str, str], downloads: Path) -> None:
    """Writes the talks; tst2013 is validation and tst2014 is test.

    You et al. (2020) report on tst2013.
    """
    pair = _with_english(languages)
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
    languages=("ar", "de", "en", "fr", "ja", "ko", "zh"),
    origin=_ORIGIN_2017,
    megabytes=30,
    licence=_LICENCE,
)
def write_iwslt17(into: Path, languages: tuple[str, str], downloads: Path) -> None:
    """Writes the talks; tst2015 is validation and tst2017 is test."""
    pair = _with_english(languages)
    with tempfile.TemporaryDirectory(dir=into) as folder:
        path = f"texts/{'/'.join(languages)}/{pair}.tgz"
        archive = download(
            f"{_ORIGIN_2017}/2017-01-trnted/{path}",
            Path(folder),
            downloads,
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
                name=f"2017-01-ted-test-{source}-{target}.tgz",
            )
            name = f"IWSLT17.TED.tst2017.{source}-{target}.{source}.xml"
            write_lines(into / f"test.{source}", segments(archive, name))


def _with_english(languages: tuple[str, str]) -> str:
    if "en" not in languages:
        raise ValueError(
            f"One of the two languages must be English. Received: {languages}"
        )
    return "-".join(languages)


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
