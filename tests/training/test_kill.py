"""kill -9 at random moments, while states are being written among them."""

import random
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

    def __call__(self, command):
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith("exit "):
                return int(line.split()[1])
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


def test_killed_runs_end_like_an_undisturbed_one(server, tmp_path):
    folder = tmp_path / "killed"
    folder.mkdir()
    start = time.monotonic()
    assert server("finish") == 0
    seconds = time.monotonic() - start
    undisturbed, log = final_variables(folder), without_times(folder)
    folder.rename(tmp_path / "undisturbed")
    folder.mkdir()

    generator = random.Random(8)
    # A state has some 12,000 bytes: these die within the first few that are written.
    commands = [f"byte {generator.randint(0, 60_000)}" for _ in range(4)]
    commands += [f"step {generator.randint(1, 6)}" for _ in range(3)]
    commands += [f"after {generator.uniform(0.5, 1) * seconds:.2f}" for _ in range(3)]
    generator.shuffle(commands)
    ends = [server(command) for command in commands]
    # One of those killed from outside may have come to its end before.
    assert ends.count(-9) >= 8 and set(ends) <= {-9, 0}
    assert server("finish") == 0
    assert toy.same(final_variables(folder), undisturbed)
    assert without_times(folder) == log
    assert not list(folder.rglob("tmp-*"))


def test_terminated_run_exits_with_143_and_resumes(server, tmp_path):
    folder = tmp_path / "killed"
    folder.mkdir()
    assert server("finish") == 0
    undisturbed = final_variables(folder)
    folder.rename(tmp_path / "undisturbed")
    folder.mkdir()
    seconds = 0.2
    while (code := server(f"terminate {seconds}")) == -15:
        seconds *= 1.5  # the run had not begun yet
    assert code == 143
    assert server("finish") == 0
    assert toy.same(final_variables(folder), undisturbed)


def without_times(folder):
    """The log without what depends on the clock."""
    times = ("seconds", "tokens_per_second")
    return [
        {key: value for key, value in record.items() if key not in times}
        for record in toy.log(folder)
    ]
