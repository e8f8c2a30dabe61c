"""Trains on disks of many sizes that fill up, frees space, and trains on.

    python -m tests.faults.full_disk --count 64

It goes through disks (tmpfs) from 64 KB to 4 MB. On each, a training must end well or
with one line and exit status 2, and never crash; with more space it must continue and
end with the weights, the log and the models of a run that had space from the start.
Mounting needs administrator rights.
"""

import argparse
import contextlib
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from tests.faults.kills import finished
from tests.faults.server import End
from tests.faults.server import Server
from tests.forks import with_tensorflow

SMALLEST, LARGEST = 64 << 10, 4 << 20
ENOUGH = 64 << 20


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=64, help="sizes (64)")
    options = parser.parse_args()
    sizes = np.linspace(SMALLEST, LARGEST, options.count).astype(int) >> 12 << 12
    with tempfile.TemporaryDirectory() as folder, with_tensorflow() as forks:
        server = Server(forks, folder)
        undisturbed = finished(server)
        for size in map(int, sizes):
            with mounted(Path(folder) / "run", size) as free_space:
                train(server, size, undisturbed, free_space)
    print(
        f"{len(sizes)} sizes: no crash, and every run ended like the undisturbed one."
    )


@contextlib.contextmanager
def mounted(path, size):
    """Context with a disk of this size; yields a function that makes it large."""

    def mount(options):
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(path)]
        subprocess.run(command, check=True)

    path.mkdir()
    mount(f"size={size}")
    try:
        yield lambda: mount(f"remount,size={ENOUGH}")
    finally:
        subprocess.run(["umount", str(path)], check=True)
        path.rmdir()


def train(server, size, undisturbed, free_space):
    """Trains until the disk is full, and then on; raises if anything is wrong."""
    status = server("finish")
    errors = (server.folder / "errors").read_text().splitlines()
    lines = [line for line in errors if line.startswith("Error: ")]
    print(f"{size >> 10:5} KB  exit {status}  {' '.join(lines)}", flush=True)
    if status:
        assert status == 2 and len(lines) == 1 == len(errors), errors
        free_space()
        assert server("finish") == 0, (server.folder / "errors").read_text()
    End(server.folder).check(undisturbed)


if __name__ == "__main__":
    main()
