"""`kav translate` killed with signal 9 at every call that matters, and at random."""

import random
import subprocess
import sys

import pytest

from tests.cli.conftest import stdout

pytestmark = pytest.mark.slow


def test_a_file_is_whole_or_continued_or_not_there(tmp_path):
    program = [sys.executable, "-m", "tests.faults.translations"]
    done = subprocess.run(
        [*program, str(tmp_path), "--random", "3"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    moments = int(done.stdout.split()[2])
    assert moments > 30


def test_a_model_that_is_killed(kav, run_folder, tmp_path, corpus_folder):
    lines = (corpus_folder / "train.xx").read_text().splitlines()[:300]
    random.Random(4).shuffle(lines)
    (tmp_path / "in").write_text("".join(f"{line}\n" for line in lines))
    model = ("--model", run_folder, "--beam-size", 2, "--precision", "bfloat16")
    expected = stdout(kav("translate", "--input", tmp_path / "in", *model))
    files = ("--input", tmp_path / "in", "--output", tmp_path / "out")
    call = [sys.executable, "-m", "keras_attnvariants", "translate", "--resume"]
    process = subprocess.Popen([*call, *map(str, (*files, *model))])
    part = tmp_path / "out.part"
    while process.poll() is None and not (part.exists() and part.stat().st_size):
        pass
    process.kill()
    assert process.wait() == -9
    assert not (tmp_path / "out").exists()
    assert expected.startswith(part.read_text())
    stdout(kav("translate", "--resume", *files, *model))
    assert (tmp_path / "out").read_text() == expected
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["in", "out"]
