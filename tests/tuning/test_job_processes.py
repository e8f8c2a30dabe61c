"""A failed or killed job affects no other; a full disk and a deadline end all."""

import time
from functools import partial

import pytest

from keras_attnvariants.tuning.job_processes import Job
from keras_attnvariants.tuning.job_processes import run_jobs
from tests.experiments.toy import work


@pytest.fixture
def run(tmp_path):
    """Errors of some jobs, run two at a time."""

    def run_kinds(*kinds, deadline=None):
        jobs = [
            Job(kind, partial(work, kind), tmp_path / f"{kind}.log") for kind in kinds
        ]
        return run_jobs(jobs, "jobs", len(jobs), 2, 1, deadline)

    return run_kinds


@pytest.mark.slow
def test_a_job_costs_only_itself(run, tmp_path, capfd):
    failed = run("fails", "dies", "ends")
    assert failed.pop("fails") == "two lines"
    assert failed.pop("dies").startswith("its process ended with status 7, see ")
    assert failed == {}
    assert "ValueError" in (tmp_path / "fails.log").read_text()
    told = capfd.readouterr().err
    assert "ends: done" in told
    assert "All log messages" not in told  # the first words of TensorFlow's greeting


@pytest.mark.slow
def test_a_full_disk_ends_all(run, tmp_path):
    start = time.monotonic()
    failed = run("full", "sleeps", "ends")
    assert list(failed) == ["full"] and "No space left" in failed["full"]
    assert time.monotonic() - start < 50
    assert not (tmp_path / "ends.log").exists()


def test_nothing_begins_after_the_deadline(run, tmp_path):
    assert run("ends", deadline=time.monotonic()) == {}
    assert not (tmp_path / "ends.log").exists()
