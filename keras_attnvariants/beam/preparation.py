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
from functools import partial
from itertools import count
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

import numpy as np

from keras_attnvariants.beam import engine
from keras_attnvariants.beam.engine import Part
from keras_attnvariants.data.cleaning import CleaningJob
from keras_attnvariants.data.cleaning import SplitReport
from keras_attnvariants.data.cleaning import clean_pair
from keras_attnvariants.data.cleaning import clean_split
from keras_attnvariants.data.cleaning import pair_key
from keras_attnvariants.data.cleaning import read_shards
from keras_attnvariants.data.corpora import load_corpus
from keras_attnvariants.data.splits import ParallelFiles
from keras_attnvariants.data.token_files import write_rows
from keras_attnvariants.data.tokenizer import Tokenizer
from keras_attnvariants.data.vocabularies import learn_vocabulary
from keras_attnvariants.utils.checks import check_integer
from keras_attnvariants.utils.files import read_json
from keras_attnvariants.utils.folders import new_folder

if TYPE_CHECKING:
    from keras_attnvariants.data.pipeline import TokenizedCorpus

_REPORT = "report.json"
# Bytes of text that a worker tokenises at a time.
PART_BYTES = 1 << 24


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
        ValueError: If Beam is not installed, `folder` is not a folder, `tokenizer` is
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
        cleaner=partial(clean, options=options, workers=workers),
        **corpus_options,
    )
    if not isinstance(tokenizer, Tokenizer):
        tokenizer = learn_vocabulary(corpus, tokenizer)
    # Late: TensorFlow.
    from keras_attnvariants.data.pipeline import TokenizedCorpus

    write = partial(write_tokens, options=options, workers=workers)
    tokens = TokenizedCorpus(corpus, tokenizer, write=write)
    for split in corpus.splits:
        tokens.split(split)
    return tokens


def clean(
    jobs: Sequence[CleaningJob], options: Sequence[str], workers: int
) -> list[SplitReport]:
    """Cleans splits as `keras_attnvariants.data.cleaning.clean_splits` does.

    A worker takes a shard at a time. To find repeated pairs, 16 bytes and a place of
    each pair travel between workers, and never its text.

    Args:
        jobs: The splits.
        options: Options of Beam.
        workers: Processes on this machine, if the options name no runner.

    Raises:
        ValueError: If the files of a shard do not fit together.
        RuntimeError: By Beam, if a worker fails.
    """
    shards = shards_of(jobs)
    with engine.pipeline(options, workers) as steps:
        _add_cleaning(steps, shards)
    reports, rest = [], iter(shards)
    for job in jobs:
        report = SplitReport(job.split, kept=job.keep_bad)
        parts = list(islice(rest, len(job.shards)))
        for part in parts:
            found = read_json(part.files.source.with_name(_REPORT))
            if "error" in found:
                raise ValueError(found["error"])
            report.read += found["read"]
            report.written += found["written"]
            report.count(Counter(found["problems"]))
        for side, file in enumerate(job.files):
            engine.join([part.files[side] for part in parts], file)
        reports.append(report)
    for shard in shards:
        shutil.rmtree(shard.files.source.parent)
    return reports


def shards_of(jobs: Sequence[CleaningJob]) -> list[CleaningJob]:
    """A job for each shard of all splits, with a folder of its own to write."""
    found: list[CleaningJob] = []
    for job in jobs:
        for shard in job.shards:
            folder = job.files.source.with_name(f"shard-{len(found):06}")
            files = ParallelFiles(folder / "source", folder / "target")
            found.append(job._replace(shards=[shard], files=files))
    return found


def keys_of(
    number: int, shards: Sequence[CleaningJob]
) -> Iterator[tuple[bytes, tuple[int, int]]]:
    """For each good pair of a shard what tells it from others, and where it is.

    A shard whose files do not fit together ends early here. Whoever cleans it says so.
    """
    job, place = shards[number], 0
    with suppress(ValueError):
        for pair in read_shards(job.shards):
            texts, problem = clean_pair(pair, job.max_characters)
            if not problem:
                key = f"{job.split}\n".encode() + pair_key(*texts)
                yield key, (number, place)
                place += 1


def clean_shard(job: CleaningJob, repeats: Iterable[int]) -> dict[str, int]:
    """Writes what is left of a shard and a report, and returns numbers of its pairs.

    What a worker began and another one ended is written once.

    Args:
        job: The shard.
        repeats: The repeated ones among its good pairs, by number.
    """
    repeated, number = frozenset(repeats), count()
    with new_folder(job.files.source.parent) as folder:
        files = ParallelFiles(*(folder.path / file.name for file in job.files))
        try:
            report = clean_split(
                job._replace(files=files), lambda *texts: next(number) in repeated
            )
        except ValueError as error:
            folder.write_json(_REPORT, {"error": str(error)})
            return {}
        folder.write_json(_REPORT, asdict(report))
    problems = {f"pairs {kind}": n for kind, n in report.problems.items()}
    return {"pairs written": report.written, **problems}


def _add_cleaning(steps: Any, shards: Sequence[CleaningJob]) -> None:
    """Adds the steps from shards to what is written of each."""
    import apache_beam as beam

    unique = [number for number, shard in enumerate(shards) if shard.unique]
    repeats = (
        steps
        | "Shards of unique pairs" >> beam.Create(unique)
        | "Key of each pair" >> beam.FlatMap(keys_of, shards)
        | "Equal pairs" >> beam.GroupByKey()
        | "All but the first" >> beam.FlatMap(lambda entry: sorted(entry[1])[1:])
    )
    todo = steps | "Shards" >> beam.Create([(n, n) for n in range(len(shards))])
    (
        {"shards": todo, "repeats": repeats}
        | "Repeats by shard" >> beam.CoGroupByKey()
        | "Clean"
        >> beam.Map(
            lambda entry: engine.count(
                clean_shard(shards[entry[0]], entry[1]["repeats"])
            )
        )
    )


def write_tokens(
    files: ParallelFiles,
    tokenizer: Tokenizer,
    into: Path,
    options: Sequence[str],
    workers: int,
) -> None:
    """Writes the token files of a split, as `keras_attnvariants.data.pipeline` does.

    Small files are tokenised in this process, large ones a part at a time.

    Args:
        files: The split.
        tokenizer: The tokenizer of both languages.
        into: Folder to write.
        options: Options of Beam.
        workers: Processes on this machine, if the options name no runner.
    """
    # Late: TensorFlow.
    from keras_attnvariants.data import pipeline

    parts = {
        into / side: engine.parts_of(file, into / side, PART_BYTES)
        for side, file in zip(pipeline.SIDES, files, strict=True)
    }
    if all(len(of_side) <= 1 for of_side in parts.values()):
        pipeline.write_tokens(files, tokenizer, into)
        return
    import apache_beam as beam

    # Beam would make rows of a table of named tuples.
    todo = [
        (tuple(part), side == pipeline.SIDES[1])
        for side, of_side in zip(pipeline.SIDES, parts.values(), strict=True)
        for part in of_side
    ]
    model = tokenizer.model_bytes
    with engine.pipeline(options, workers) as steps:
        (
            steps
            | "Parts" >> beam.Create(todo)
            | "Tokenise"
            >> beam.MapTuple(
                lambda part, is_target: engine.count(
                    tokenize_part(Part(*part), model, is_target)
                )
            )
        )
    for path, of_side in parts.items():
        join_tokens([Path(part.output) for part in of_side], path)


def tokenize_part(part: Part, model: bytes, is_target: bool) -> dict[str, int]:
    """Writes a folder with the tokens of a part, and returns how many lines it has.

    What a worker began and another one ended is written once.
    """
    from keras_attnvariants.data import pipeline

    of_sources = Tokenizer(model)
    tokenizer = (of_sources.target if is_target else of_sources).tf_tokenizer()
    text = part.lines()
    blocks = iter(lambda: list(islice(text, pipeline.LINES_PER_BLOCK)), [])
    rows = map(pipeline.flat_rows, map(tokenizer.tokenize, blocks))
    with new_folder(Path(part.output)) as folder:
        write_rows(rows, folder.path / "part")
        lines = (folder.path / "part.offsets").stat().st_size // 8 - 1
    return {"lines tokenised": lines}


def join_tokens(folders: Sequence[Path], path: Path) -> None:
    """Joins the token files of parts, whose folders are removed."""
    ids = [folder / "part.ids" for folder in folders]
    engine.join(ids, path.with_suffix(".ids"))
    end = 0
    with path.with_suffix(".offsets").open("wb") as output:
        np.zeros(1, np.int64).tofile(output)
        for folder in folders:
            ends = end + np.fromfile(folder / "part.offsets", np.int64)
            ends[1:].tofile(output)
            end = int(ends[-1])
            shutil.rmtree(folder)
