"""Corpora of many files, made ready for training by many processes."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any
from typing import NamedTuple

from keras_attnvariants.beam import engine
from keras_attnvariants.beam.engine import join
from keras_attnvariants.data.cleaning import PROBLEMS
from keras_attnvariants.data.cleaning import CleaningJob
from keras_attnvariants.data.cleaning import SplitReport
from keras_attnvariants.data.cleaning import good_pairs
from keras_attnvariants.data.cleaning import pair_key
from keras_attnvariants.data.cleaning import read_parallel
from keras_attnvariants.data.cleaning import write_clean
from keras_attnvariants.data.corpora import load_corpus
from keras_attnvariants.data.tokenizer import Tokenizer
from keras_attnvariants.data.vocabularies import learn_vocabulary
from keras_attnvariants.utils.checks import check_integer
from keras_attnvariants.utils.files import read_json
from keras_attnvariants.utils.folders import new_folder

if TYPE_CHECKING:
    from keras_attnvariants.data.pipeline import TokenizedCorpus

_REPORT = "report.json"
_SIDES = ("source", "target")


def prepare(
    folder: os.PathLike[str] | str,
    source_language: str,
    target_language: str,
    tokenizer: Tokenizer | int,
    *,
    workers: int = 1,
    options: Sequence[str] = (),
    **corpus_options: Any,
) -> TokenizedCorpus:
    """Cleans and tokenises a corpus with Beam, into the cache that training reads.

    The files are byte for byte those that `load_corpus` and `TokenizedCorpus` write in
    one process: a training that begins afterwards finds them. Batches need no
    preparation: a training plans them in seconds.

    Args:
        folder: Text files as for `load_corpus`; a split may be in shards, such as
            `train-00000-of-00010.en.gz`, and a worker takes a shard at a time.
        source_language: Language code as in the file names.
        target_language: Language code as in the file names.
        tokenizer: The tokenizer, or the size of the vocabulary to learn.
        workers: Processes on this machine.
        options: Options of Beam instead, such as `["--runner=FlinkRunner", …]`. All
            workers must see the folder and the cache under the same paths.
        **corpus_options: Further arguments of `load_corpus`, such as `unique=True` and
            `cache_dir`.

    Returns:
        The tokenised corpus. `kav.training.train_preset` takes its attribute `corpus`,
        and with the same `vocabulary_size` finds vocabulary and tokens in the cache.

    Raises:
        ValueError: If Beam is not installed, `folder` is no folder, `tokenizer` is
            neither a tokenizer nor a size, or as `load_corpus`.
        RuntimeError: By Beam, if a worker fails.

    Example:

    ```python
    tokens = kav.beam.prepare("crawled", "en", "de", 32000, workers=8, unique=True)
    kav.training.train_preset(
        preset, tokens.corpus, "runs/crawled", vocabulary_size=32000
    )
    ```
    """
    engine.check_beam()
    engine.arguments(options, workers)
    if not isinstance(tokenizer, Tokenizer):
        check_integer("tokenizer", tokenizer)
    if not Path(folder).is_dir():
        raise ValueError(f"`folder` must be a folder of text files. Received: {folder}")
    corpus = load_corpus(
        folder,
        source_language,
        target_language,
        cleaner=BeamCleaner(options, workers),
        **corpus_options,
    )
    if not isinstance(tokenizer, Tokenizer):
        tokenizer = learn_vocabulary(corpus, tokenizer)
    from keras_attnvariants.beam.tokens import BeamTokenizedCorpus

    tokens = BeamTokenizedCorpus(corpus, tokenizer, options, workers)
    for split in corpus.splits:
        tokens.split(split)
    return tokens


class Shard(NamedTuple):
    """A shard to be cleaned.

    Attributes:
        number: its place among the shards of all splits.
        source, target: its files.
        output: folder to write.
        split, max_characters, keep_bad, unique: as in `CleaningJob`.
    """

    number: int
    source: str
    target: str
    output: str
    split: str
    max_characters: int
    keep_bad: bool
    unique: bool

    def pairs(self) -> Iterator[tuple[bytes, bytes]]:
        """The lines, in pairs."""
        return read_parallel(Path(self.source), Path(self.target))


class BeamCleaner:
    """Cleans splits with Beam; see `keras_attnvariants.data.cleaning.clean_splits`.

    A worker takes a shard at a time. To find repeated pairs, 16 bytes and a place of
    each pair travel between workers, and never its text.

    Args:
        options: options of Beam.
        workers: processes on this machine, if the options name no runner.
    """

    def __init__(self, options: Sequence[str], workers: int) -> None:
        self._options, self._workers = options, workers

    def __call__(self, jobs: Sequence[CleaningJob]) -> list[SplitReport]:
        by_job = shards_of(jobs)
        shards = [shard for shards in by_job for shard in shards]
        with engine.pipeline(self._options, self._workers) as steps:
            _put_together(steps, shards)
        reports = []
        for job, parts in zip(jobs, by_job, strict=True):
            reports.append(_joined_report(job, parts))
            for side, file in zip(_SIDES, job.files, strict=True):
                join([Path(part.output) / side for part in parts], file)
        for shard in shards:
            shutil.rmtree(shard.output)
        return reports


def shards_of(jobs: Sequence[CleaningJob]) -> list[list[Shard]]:
    """The shards of each split, numbered through."""
    found: list[list[Shard]] = []
    for job in jobs:
        first = sum(map(len, found))
        found.append(
            [
                Shard(
                    number,
                    str(files.source),
                    str(files.target),
                    str(job.files.source.with_name(f"shard-{number:06}")),
                    job.split,
                    job.max_characters,
                    job.keep_bad,
                    job.unique,
                )
                for number, files in enumerate(job.shards, first)
            ]
        )
    return found


def keys_of(shard: Shard) -> Iterator[tuple[bytes, tuple[int, int]]]:
    """For each good pair what tells it from others, and where it is.

    A shard whose files do not fit together ends early here. Whoever cleans it says so.
    """
    with suppress(ValueError):
        for place, pair in enumerate(good_pairs(shard.pairs(), shard.max_characters)):
            key = f"{shard.split}\n".encode() + pair_key(*pair)
            yield key, (shard.number, place)


def repeats_of(
    entry: tuple[bytes, Iterable[tuple[int, int]]],
) -> Iterator[tuple[int, int]]:
    """Where a pair is, but for the first place."""
    yield from sorted(entry[1])[1:]


class Listed:
    """Which good pairs are repeated, by their places."""

    def __init__(self, places: Iterable[int]) -> None:
        self._places, self._next = frozenset(places), 0

    def __call__(self, source: str, target: str) -> bool:
        self._next += 1
        return self._next - 1 in self._places


def clean_shard(shard: Shard, repeats: Iterable[int]) -> SplitReport | None:
    """Writes what is left of a shard and a report; `None` if it is no parallel text.

    What a worker began and another one ended is written once.
    """
    with new_folder(Path(shard.output)) as folder:
        files = folder.path / _SIDES[0], folder.path / _SIDES[1]
        try:
            report = write_clean(
                shard.pairs(),
                files,
                shard.split,
                shard.max_characters,
                shard.keep_bad,
                Listed(repeats) if shard.unique else None,
            )
        except ValueError as error:
            folder.write_json(_REPORT, {"error": str(error)})
            return None
        folder.write_json(_REPORT, asdict(report))
    return report


def _clean_and_count(entry: tuple[int, dict[str, Iterable[Any]]]) -> None:
    """Cleans one shard in a pipeline, which counts what it finds."""
    [shard] = entry[1]["shards"]
    report = clean_shard(Shard(*shard), entry[1]["repeats"])
    if report is not None:
        engine.count("prepare", "pairs written", report.written)
        for kind, number in report.problems.items():
            engine.count("prepare", f"pairs {kind}", number)


def _put_together(steps: Any, shards: Sequence[Shard]) -> None:
    """The steps from shards to what is written of each."""
    import apache_beam as beam

    numbered = [(shard.number, tuple(shard)) for shard in shards]
    unique = [tuple(shard) for shard in shards if shard.unique]
    repeats = (
        steps
        | "Shards of unique pairs" >> beam.Create(unique)
        | "Key of each pair" >> beam.FlatMap(lambda shard: keys_of(Shard(*shard)))
        | "Equal pairs" >> beam.GroupByKey()
        | "All but the first" >> beam.FlatMap(repeats_of)
    )
    todo = steps | "Shards" >> beam.Create(numbered)
    (
        {"shards": todo, "repeats": repeats}
        | "Repeats by shard" >> beam.CoGroupByKey()
        | "Clean" >> beam.Map(_clean_and_count)
    )


def _joined_report(job: CleaningJob, shards: Sequence[Shard]) -> SplitReport:
    """The report on a split from those on its shards.

    Raises:
        ValueError: the files of a shard do not fit together.
    """
    whole = SplitReport(job.split, kept=job.keep_bad)
    problems: Counter[str] = Counter()
    for shard in shards:
        report = read_json(Path(shard.output) / _REPORT)
        if "error" in report:
            raise ValueError(report["error"])
        whole.read += report["read"]
        whole.written += report["written"]
        problems.update(report["problems"])
    whole.problems = {kind: problems[kind] for kind in PROBLEMS if problems[kind]}
    return whole
