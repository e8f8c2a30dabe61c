"""Virtual environments of the programs that ours is compared with.

Packages come from pip's configured index; builds without GPU suffice.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from rich import print

FOLDER = Path(__file__).resolve().parents[1] / "environments"

REQUIREMENTS = {
    "ctranslate2": ("ctranslate2==4.8.5", "numpy==2.4.6"),
    # With the versions of NumPy and protobuf that it requires.
    "joeynmt": (
        *("joeynmt==2.3.0", "torch==2.13.0", "sentencepiece==0.2.0"),
        "importlib-metadata==10.2.0",  # imported by it, but not required
    ),
    "torch": ("torch==2.13.0", "transformers==5.23.0", "numpy==2.4.6"),
}


def interpreter(name: str) -> Path:
    """The Python of an environment, which is created unless it exists as required."""
    folder = FOLDER / name
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    complete = folder / "requirements.txt"
    wanted = "\n".join(REQUIREMENTS[name]) + "\n"
    if complete.exists() and complete.read_text() == wanted:
        return python
    print(f"Installing {', '.join(REQUIREMENTS[name])} into {folder}")
    shutil.rmtree(folder, ignore_errors=True)
    run(sys.executable, "-m", "venv", folder)
    pip = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    run(python, *pip, *REQUIREMENTS[name])
    complete.write_text(wanted)
    return python


def run(*command: str | Path) -> None:
    """Runs a command that must succeed."""
    subprocess.run(list(map(str, command)), check=True)  # noqa: S603
