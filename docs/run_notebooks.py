"""Runs the notebooks of the documentation: `python docs/run_notebooks.py [--write]`.

Each runs in a fresh kernel and an empty folder. With `--write`, its outputs are stored
in its file; without, it only has to run. Needs `pip install '.[test]'`.
"""

import argparse
import os
import subprocess
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOKS = sorted(Path(__file__).with_name("notebooks").glob("*.ipynb"))
# Keeps what TensorFlow writes to standard error out of the outputs of cells.
QUIET = ["--IPKernelApp.capture_fd_output=False"]
# Time limit of a cell, in seconds.
LONGEST = 300


def run(path: Path) -> nbformat.NotebookNode:
    """A notebook with the outputs of its cells.

    Raises:
        nbclient.exceptions.CellExecutionError: a cell raises.
    """
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook,
        timeout=LONGEST,
        record_timing=False,
        coalesce_streams=True,
        extra_arguments=QUIET,
    )
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"KAV_CACHE": f"{folder}/cache"}
        client.execute(cwd=folder, env=environment, stderr=subprocess.DEVNULL)
    # Without the version of Python, which differs between machines.
    notebook.metadata.language_info = {"name": "python"}
    return notebook


def main() -> None:
    """Runs the notebooks that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("notebooks", nargs="*", type=Path, default=NOTEBOOKS)
    parser.add_argument("--write", action="store_true", help="store the outputs")
    options = parser.parse_args()
    for path in options.notebooks:
        print(path.name, flush=True)
        notebook = run(path)
        if options.write:
            nbformat.write(notebook, path)


if __name__ == "__main__":
    main()
