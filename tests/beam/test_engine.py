"""Pipelines on this machine, and parts of files."""

import importlib.util

import pytest

from keras_attnvariants.beam import engine
from keras_attnvariants.beam.engine import join
from keras_attnvariants.beam.engine import parts_of
from tests.beam.conftest import HERE


def test_workers_are_processes_of_this_machine():
    assert engine.arguments(["--job_name=x"], 3) == [
        "--runner=FnApiRunner",
        "--direct_running_mode=multi_processing",
        "--direct_num_workers=3",
        "--job_name=x",
    ]


def test_a_runner_has_its_own_options():
    options = ["--runner=FlinkRunner", "--parallelism=8"]
    assert engine.arguments(options, 1) == options


@pytest.mark.parametrize(
    ("options", "workers", "message"),
    [
        ([], 0, "`workers` must be a positive integer"),
        (["runner"], 1, "must be those of Beam.*Received: 'runner'"),
        (["--runner=X"], 2, r"Received: workers=2 and \['--runner=X'\]"),
    ],
)
def test_wrong_options(options, workers, message):
    with pytest.raises(ValueError, match=message):
        engine.arguments(options, workers)


def test_without_beam_a_line_says_what_to_install(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"of its own.*pip install .*\[beam\]"):
        with engine.pipeline([], 1):
            pass


def count_letters(word):
    engine.count({"letters": len(word)})


def test_a_pipeline_runs_at_its_end_without_a_download(beam, monkeypatch):
    import apache_beam
    from apache_beam.runners.portability import prism_runner

    def refuse(*arguments):
        raise AssertionError("a program that would be downloaded")

    results, run = [], apache_beam.Pipeline.run

    def keep(pipeline, *options):
        results.append(run(pipeline, *options))
        return results[-1]

    monkeypatch.setattr(prism_runner.PrismRunner, "run_pipeline", refuse)
    monkeypatch.setattr(apache_beam.Pipeline, "run", keep)
    with engine.pipeline(HERE, 1) as steps:
        words = steps | apache_beam.Create(["a", "bcd"])
        words | apache_beam.Map(count_letters)
    [counter] = results[0].metrics().query()["counters"]
    assert counter.committed == 4


LINES = [b"\xef\xbb\xbfab", b"", b"c" * 20, b"d", b"", b"", b"efg"]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
@pytest.mark.parametrize("end", [b"\n", b""])
def test_the_parts_have_every_line_once(tmp_path, size, end):
    file = tmp_path / "text"
    file.write_bytes(b"\n".join(LINES) + end)
    parts = parts_of(file, tmp_path / "out", size)
    assert len(parts) == -(-file.stat().st_size // size)
    assert [part.output for part in parts] == sorted({part.output for part in parts})
    assert [line for part in parts for line in part.lines()] == LINES


def test_an_empty_file_has_no_parts(tmp_path):
    (tmp_path / "empty").touch()
    assert parts_of(tmp_path / "empty", tmp_path / "out", 9) == []


def test_files_are_joined_and_removed(tmp_path):
    files = [tmp_path / name for name in ("b", "a")]
    for file in files:
        file.write_text(file.name)
    join(files, tmp_path / "whole")
    assert [path.name for path in tmp_path.iterdir()] == ["whole"]
    assert (tmp_path / "whole").read_text() == "ba"
