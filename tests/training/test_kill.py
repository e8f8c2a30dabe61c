"""kill -9 at random moments, while states are being written among them."""

import random
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest

from tests.training import toy

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:__array__:DeprecationWarning"),
]


class Server:
    """A process that has imported TensorFlow and forks one child a command."""

    def __init__(self, folder):
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.training.kill_server", str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._answer("ready")

    def __call__(self, command):
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()
        return int(self._answer("exit")[1])

    def _answer(self, first):
        """The words of the next line that begins with this one."""
        for line in self._process.stdout:
            words = line.split()
            if words[:1] == [first]:
                return words
        raise RuntimeError("the server died")

    def close(self):
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()


@pytest.fixture
def server(tmp_path):
    server = Server(tmp_path / "killed")
    yield server
    server.close()


def final_variables(folder):
    with np.load(folder / "variables.npz") as arrays:
        return [arrays[str(index)] for index in range(len(arrays.files))]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """Final variables, log and seconds of a run that nobody kills."""
    folder = tmp_path_factory.mktemp("undisturbed")
    server = Server(folder)
    start = time.monotonic()
    assert server("finish") == 0
    seconds = time.monotonic() - start
    server.close()
    return final_variables(folder), without_times(folder), seconds


def assert_same_end(folder, undisturbed):
    assert toy.same(final_variables(folder), undisturbed[0])
    assert without_times(folder) == undisturbed[1]
    assert not list(folder.rglob("tmp-*"))


def test_runs_killed_ten_times_end_like_an_undisturbed_one(
    server, tmp_path, undisturbed
):
    folder = tmp_path / "killed"
    folder.mkdir()
    generator = random.Random(8)
    kinds = ["byte"] * 4 + ["step"] * 3 + ["after"] * 3
    generator.shuffle(kinds)
    while kinds:
        # A state has some 12,000 bytes, a run some 30 states in 60 updates.
        moments = {
            "byte": generator.randint(0, 60_000),
            "step": generator.randint(1, 10),
            "after": generator.uniform(0.2, 0.9) * undisturbed[2],
        }
        code = server(f"{kinds[-1]} {moments[kinds[-1]]}")
        if code == 0:  # it was done before it could be killed
            assert_same_end(folder, undisturbed)
            shutil.rmtree(folder)
            folder.mkdir()
        else:
            assert code == -9
            kinds.pop()
    assert server("finish") == 0
    assert_same_end(folder, undisturbed)


def test_terminated_run_exits_with_143_and_resumes(server, tmp_path, undisturbed):
    folder = tmp_path / "killed"
    folder.mkdir()
    assert server("terminate 20") == 143
    assert server("finish") == 0
    assert_same_end(folder, undisturbed)


def without_times(folder):
    """The log without what depends on the clock."""
    times = ("seconds", "tokens_per_second")
    return [
        {key: value for key, value in record.items() if key not in times}
        for record in toy.log(folder)
    ]
