"""Shards that are cleaned apart, as far as it needs no Beam."""

from collections import defaultdict
from pathlib import Path

from keras_attnvariants.beam import cleaning
from keras_attnvariants.data.cleaning import CleaningJob
from keras_attnvariants.data.cleaning import clean_splits
from keras_attnvariants.data.splits import ParallelFiles
from tests.beam.conftest import SHARDS


def job_of(folder, output, unique=True):
    output.mkdir(exist_ok=True)
    shards = [
        ParallelFiles(
            *(folder / f"train-{i:05}-of-{SHARDS:05}.{la}" for la in languages)
        )
        for i, languages in enumerate([("en", "de")] * SHARDS)
    ]
    files = ParallelFiles(output / "train.en", output / "train.de")
    return CleaningJob("train", shards, files, 2000, keep_bad=False, unique=unique)


def test_shards_give_what_one_process_gives(folder, tmp_path):
    [expected] = clean_splits([job := job_of(folder, tmp_path / "one")])
    [shards] = cleaning.shards_of([job_of(folder, tmp_path / "parts")])
    places = defaultdict(list)
    for shard in reversed(shards):  # in any order
        for key, place in cleaning.keys_of(shard):
            places[key].append(place)
    repeats = defaultdict(list)
    for entry in places.items():
        for number, place in cleaning.repeats_of(entry):
            repeats[number].append(place)
    reports = [cleaning.clean_shard(shard, repeats[shard.number]) for shard in shards]
    for side, file in zip(("source", "target"), job.files, strict=True):
        parts = [(Path(shard.output) / side).read_bytes() for shard in shards]
        assert b"".join(parts) == file.read_bytes()
    assert sum(report.written for report in reports) == expected.written == 60
    found = sum(report.problems["repeated"] for report in reports)
    assert found == expected.problems["repeated"] == 6


def test_a_shard_is_written_once_though_two_workers_do(folder, tmp_path):
    [[shard, *_]] = cleaning.shards_of([job_of(folder, tmp_path / "parts", False)])
    assert cleaning.clean_shard(shard, []) == cleaning.clean_shard(shard, [])
    names = {path.name for path in Path(shard.output).iterdir()}
    assert names == {"source", "target", "report.json", "manifest.json"}


def test_equal_pairs_of_two_splits_are_not_repeated(folder, tmp_path):
    job = job_of(folder, tmp_path / "parts")
    [train], [more] = cleaning.shards_of(
        [
            job._replace(shards=job.shards[:1]),
            job._replace(split="training", shards=job.shards[:1]),
        ]
    )
    keys = [{key for key, _ in cleaning.keys_of(shard)} for shard in (train, more)]
    assert not keys[0] & keys[1]
    assert (train.number, more.number) == (0, 1)
