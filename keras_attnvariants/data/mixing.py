"""Several corpora as one, with a tag in front of the sources of each."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from keras_attnvariants.data.alignments import ALIGNMENTS
from keras_attnvariants.data.corpora import Corpus
from keras_attnvariants.data.splits import ParallelFiles
from keras_attnvariants.data.text_files import fingerprint
from keras_attnvariants.data.text_files import read_byte_lines
from keras_attnvariants.data.text_files import read_text_lines
from keras_attnvariants.data.vocabularies import check_tag
from keras_attnvariants.utils.caches import cached_folder
from keras_attnvariants.utils.caches import default_cache
from keras_attnvariants.utils.checks import check_positive
from keras_attnvariants.utils.folders import FolderWriter

_TRAIN = "train"
# The index of a source word in a link such as 0-1.
_SOURCE = re.compile(r"\d+(?=-)")


@dataclass(frozen=True)
class Mixture:
    """Shares of corpora whose pairs are stored corpus by corpus.

    Attributes:
        sizes: pairs of each corpus.
        weights: one for each corpus; its share is its weight over their sum. `None` for
            shares that follow from the sizes `n` by the temperature `T`: `n^(1/T)` over
            the sum of these. With `T = 1`, all pairs are seen equally often; with a
            high `T`, all corpora.
        temperature: `T`, at least 1.

    Raises:
        ValueError: a number is out of range, there are not as many weights as corpora,
            or both weights and a temperature are given.
    """

    sizes: tuple[int, ...]
    weights: tuple[float, ...] | None = None
    temperature: float = 1.0

    def __post_init__(self) -> None:
        if check_positive("temperature", self.temperature) < 1:
            raise ValueError(
                f"`temperature` must not be below 1. Received: {self.temperature}"
            )
        if self.weights is None:
            return
        if self.temperature != 1:
            raise ValueError(
                "`weights` and `temperature` both say how often a corpus is seen: give "
                f"one of them. Received: {self.weights} and {self.temperature}"
            )
        if len(self.weights) != len(self.sizes):
            raise ValueError(
                "`weights` must have one entry for each corpus. "
                f"Received: {len(self.weights)} for {len(self.sizes)} corpora"
            )
        for weight in self.weights:
            check_positive("weights", weight)

    def shares(self, counts: Sequence[int]) -> np.ndarray:
        """Share of each corpus in an epoch, given its number of pairs in batches."""
        sizes = np.asarray(counts, np.float64)
        powers = sizes ** (1.0 / self.temperature)
        parts = np.asarray(self.weights or powers) * (sizes > 0)
        return np.asarray(parts / parts.sum())

    def to_dict(self) -> dict[str, Any]:
        """The entries for the settings of a run."""
        weights = None if self.weights is None else list(self.weights)
        return {"data_weight": weights, "data_temperature": self.temperature}


def mix_corpora(
    corpora: Sequence[Corpus],
    weights: Sequence[float] | None = None,
    temperature: float = 1.0,
    tags: Sequence[str] = (),
    cache_dir: os.PathLike[str] | str | None = None,
) -> Corpus:
    """Several corpora as one, written to the cache once.

    In training, an epoch has as many pairs as all corpora together; `Mixture` gives the
    share of each. Every other split, such as "validation", has the pairs of all corpora
    that have it, in turns: the first of each, then the second of each, and so on. If
    only some corpora have alignments, pairs of the others have no links.

    Args:
        corpora: from `load_corpus`.
        weights: number of times that each corpus is seen, relative to the others.
        temperature: instead of weights; see `Mixture`.
        tags: one for each corpus, put in front of each of its sources with a space;
            none by default. `""` means no tag. A tokenizer trained on this corpus keeps
            each tag as one piece.
        cache_dir: as in `load_corpus`.

    Raises:
        ValueError: there is no corpus, one is a mixture itself or has no split "train",
            their tasks differ, the number of weights or tags is not that of the
            corpora, or a tag is not a single word.

    Example:

    ```python
    clean = kav.data.load_corpus("clean", "en", "de")
    crawled = kav.data.load_corpus("crawled", "en", "de")
    both = kav.data.mix_corpora([clean, crawled], [3, 1], tags=["", "<web>"])
    kav.training.train_preset(preset, both, "runs/both")
    ```
    """
    if not corpora:
        raise ValueError("`corpora` must hold at least one. Received: none")
    tags = tuple(tags) or ("",) * len(corpora)
    if len(tags) != len(corpora):
        raise ValueError(
            "`tags` must have one entry for each corpus, `''` for none. "
            f"Received: {len(tags)} for {len(corpora)} corpora"
        )
    used = tuple(map(check_tag, dict.fromkeys(filter(None, tags))))
    for corpus in corpora:
        corpus.files(_TRAIN)
        if corpus.mixture is not None:
            raise ValueError(
                "`corpora` must be from `load_corpus`: mix all of them at once. "
                f"Received: the mixture {corpus.name}"
            )
    if len(found := {corpus.task for corpus in corpora}) > 1:
        raise ValueError(
            "`corpora` must be of one task. Received: " + ", ".join(sorted(found))
        )
    mixture = Mixture(
        tuple(corpus.reports[_TRAIN].written for corpus in corpora),
        None if weights is None else tuple(map(float, weights)),
        temperature,
    )
    folder, splits = _written(corpora, tags, cache_dir)
    is_aligned = any(corpus.alignments for corpus in corpora)
    notes = [f"{c.name}: {line}" for c in corpora for line in c.report.split("\n")]
    return replace(
        corpora[0],
        name="+".join(corpus.name for corpus in corpora),
        folder=folder,
        splits=splits,
        reports={},
        notes=tuple(notes),
        mixture=mixture,
        tags=used,
        revision=" ".join(corpus.revision for corpus in corpora if corpus.revision),
        alignments=folder / ALIGNMENTS if is_aligned else None,
        inputs=tuple(file for corpus in corpora for file in corpus.inputs),
    )


def _written(
    corpora: Sequence[Corpus],
    tags: Sequence[str],
    cache_dir: os.PathLike[str] | str | None,
) -> tuple[Path, dict[str, ParallelFiles]]:
    """The folder of the joint files, and the files by split."""
    cache = Path(cache_dir) if cache_dir else default_cache()
    names = list(dict.fromkeys(split for c in corpora for split in c.splits))
    inputs = [file for c in corpora for files in c.splits.values() for file in files]
    owners = [(sorted(c.splits), bool(c.alignments)) for c in corpora]
    aligned = [corpus.alignments for corpus in corpora if corpus.alignments]
    digest = fingerprint([*inputs, *aligned], owners, list(tags))
    folder = cache / "corpora" / f"mixed-{digest}"
    splits = {
        name: ParallelFiles(folder / f"{name}.source", folder / f"{name}.target")
        for name in names
    }

    def write(into: FolderWriter) -> None:
        for name, side in itertools.product(names, (0, 1)):
            texts = [
                _lines(corpus.splits[name][side], tag if side == 0 else "")
                for corpus, tag in zip(corpora, tags, strict=True)
                if name in corpus.splits
            ]
            lines = in_turns(texts) if name != _TRAIN else itertools.chain(*texts)
            with (into.path / splits[name][side].name).open("wb") as file:
                file.writelines(line + b"\n" for line in lines)
        if aligned:
            with (into.path / ALIGNMENTS).open("w", encoding="ascii") as file:
                for corpus, tag in zip(corpora, tags, strict=True):
                    file.writelines(f"{line}\n" for line in _links(corpus, tag))

    cached_folder(folder, write)
    return folder, splits


def _links(corpus: Corpus, tag: str) -> Iterable[str]:
    """The links of each training pair: none if the corpus has no alignments."""
    if corpus.alignments is None:
        return itertools.repeat("", corpus.reports[_TRAIN].written)
    lines = read_text_lines(corpus.alignments)
    if not tag:
        return lines
    # The tag is one more word before those of the source.
    return (_SOURCE.sub(lambda index: f"{int(index[0]) + 1}", line) for line in lines)


def _lines(path: Path, tag: str) -> Iterator[bytes]:
    prefix = f"{tag} ".encode() if tag else b""
    return (prefix + line for line in read_byte_lines(path))


def in_turns(texts: Sequence[Iterable[bytes]]) -> Iterator[bytes]:
    """Yields the first line of each text, then the second lines, and so on."""
    for lines in itertools.zip_longest(*texts):
        yield from (line for line in lines if line is not None)
