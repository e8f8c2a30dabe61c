"""Runs the commands in odd surroundings, and checks how they end.

    python -m tests.faults.surroundings

The surroundings are a dumb terminal, the C locale, closed streams, no home, a working
folder that nobody can write to, 64 open files, and a process that is stopped for a
while. Each command must end with status 0, or say in a line what is wrong: no traceback
and no signal.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.toy_runs import write_corpus

REPOSITORY = Path(__file__).resolve().parents[2]
# Runs as for a user who is not in the list of users.
NOBODY = (
    "import os, pwd, runpy, sys\n"
    "def getpwuid(number): raise KeyError(number)\n"
    "pwd.getpwuid = getpwuid\n"
    "runpy.run_module('keras_attnvariants', run_name='__main__', alter_sys=True)\n"
)
# By name: what the shell does with the command, "$@".
SURROUNDINGS = {
    "as usual": 'exec "$@"',
    "TERM=dumb": 'TERM=dumb exec "$@"',
    "LANG=C": 'LC_ALL=C LANG=C exec "$@"',
    "without HOME": 'unset HOME KAV_CACHE XDG_CACHE_HOME; exec "$@"',
    "without HOME, with KAV_CACHE": 'unset HOME; exec "$@"',
    "standard input closed": 'exec "$@" <&-',
    "standard output closed": 'exec "$@" >&-',
    "standard error closed": 'exec "$@" 2>&-',
    "all streams closed": 'exec "$@" <&- >&- 2>&-',
    "a working folder to read": 'cd /proc; exec "$@"',
    "64 open files": 'ulimit -n 64; exec "$@"',
}
SIZES = "--width=8 --layers=1 --heads=2 --feed-forward=16 --vocabulary-size=50"
TRAINING = "--preset=kav/base/multi30k --batch-tokens=512 --precision=float32"
LANGUAGES = "--source=xx --target=yy"


def calls(folder):
    """The commands, by their first word, for the folders in a place."""
    run, corpus = folder / "run", f"--data={folder / 'corpus'}"
    model = f"--model={run}"
    return [
        f"train {corpus} --run={run} {LANGUAGES} {SIZES} {TRAINING} --steps=2",
        f"evaluate {model} {corpus} {LANGUAGES} --sentences=2",
        f"translate {model} bä",
        f"translate {model}",
        f"export {model} --output={folder / 'saved'} --precision=float32",
        f"translate --saved-model={folder / 'saved'} bä",
        f"attention ba {model}",
        f"doctor {run}",
        "doctor",
        "corpora",
        "presets cs287",
        "--help",
    ]


def start(name, call, **options):
    """Starts a command in surroundings of this name."""
    what = ["-c", NOBODY] if "HOME" in name else ["-m", "keras_attnvariants"]
    shell = ["bash", "-c", SURROUNDINGS[name], "bash"]
    return subprocess.Popen(
        [*shell, sys.executable, *what, *call.split()],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        **options,
    )


def fault(process, output):
    """The fault in the end of a command; empty if there is none."""
    if process.returncode not in (0, 1, 2):
        return f"ended with status {process.returncode}"
    if "Traceback (most recent call last)" in output:
        return "printed a traceback"
    return ""


def disturb(name, folder):
    """Runs all commands in surroundings; returns the number that went wrong."""
    wrong = 0
    for call in calls(folder):
        process = start(name, call, cwd=folder)
        output = "".join(process.communicate(timeout=300))
        told = fault(process, output)
        lines = output.strip().splitlines()
        end = lines[-1] if process.returncode and lines else ""
        print(f"{name}: kav {call.split()[0]}: {process.returncode} {told} {end}")
        if told:
            print(output[-3000:])
        wrong += bool(told)
    return wrong


def stop_and_go_on(folder):
    """Stops a training for two seconds; returns whether it went wrong."""
    call = calls(folder)[0].replace("--steps=2", "--steps=200")
    process = start("as usual", call.replace("/run", "/other"), cwd=folder)
    for _ in range(4):
        time.sleep(3)
        process.send_signal(signal.SIGSTOP)
        time.sleep(2)
        process.send_signal(signal.SIGCONT)
    output = "".join(process.communicate(timeout=300))
    told = fault(process, output) or process.returncode
    print(f"stopped and continued: kav train: {process.returncode}")
    return bool(told)


def main():
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        os.environ["KAV_CACHE"] = str(folder / "cache")
        (folder / "corpus").mkdir()
        write_corpus(folder / "corpus")
        wrong = sum(disturb(name, folder) for name in SURROUNDINGS)
        wrong += stop_and_go_on(folder)
    print(f"{wrong} commands went wrong")
    raise SystemExit(wrong > 0)


if __name__ == "__main__":
    main()
