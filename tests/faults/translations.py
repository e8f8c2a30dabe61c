"""Kills `kav translate` at every moment that matters, and continues it.

    python -m tests.faults.translations FOLDER [--random 20]

Each child is forked, dies at one of its calls of the file system, and is continued by
another child until the file is complete: it must equal that of a child that was not
killed, and be the only one in the folder. Translating is replaced by upper-casing; the
rest is the real command.
"""

import argparse
import contextlib
import os
import random
import signal
import sys
import time
from pathlib import Path

import keras_attnvariants.cli.translate as command
from keras_attnvariants.cli import app
from keras_attnvariants.cli.outputs import LineWriter
from keras_attnvariants.cli.systems import SystemOptions

# 32 + 64 + 128 + 76 lines, with empty ones among them.
LINES = [f"line {number} \u2028 of" if number % 7 else "" for number in range(300)]
EXPECTED = "".join(f"{line.upper().replace(chr(0x2028), ' ')}\n" for line in LINES)
# Functions that the command calls besides `LineWriter.write`.
CALLS = (
    (os, "open"),
    (os, "fsync"),
    (os, "ftruncate"),
    (Path, "rename"),
    (Path, "replace"),
    (Path, "unlink"),
)


class Countdown:
    """Kills this process at one of its calls."""

    def __init__(self, calls):
        self.left = calls

    def before(self, function):
        """The same function, before which the process may die."""

        def disturbed(*args, **kwargs):
            self.tick()
            return function(*args, **kwargs)

        return disturbed

    def tick(self):
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def torn(countdown):
    """A `write` of which half a line may reach the disk."""
    write = LineWriter.write

    def disturbed(self, texts, translations):
        if countdown.left == 1:
            self.file.write("HALF A LI")
            self.file.flush()
        countdown.tick()
        write(self, texts, translations)
        countdown.tick()

    return disturbed


def translate(folder, seconds=0.0):
    """Runs the command, which takes `seconds` per batch; raises `SystemExit`."""

    def shout(texts):
        time.sleep(seconds)
        return [text.upper() for text in texts]

    SystemOptions.check = lambda *_: None
    SystemOptions.translators = lambda *_: {Path(): shout}
    command.model_folder = lambda _, name: Path(name)
    command.model_digest = str
    files = ["--input", str(folder / "in"), "--output", str(folder / "out" / "out")]
    app(["translate", "--model", ".", "--resume", *files])


def child(folder, calls=0, seconds=0.0):
    """The exit status of a process that translates until it is killed."""
    pid = os.fork()
    if pid:
        if seconds:
            time.sleep(seconds)
            os.kill(pid, signal.SIGKILL)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    status = 1
    try:
        countdown = Countdown(calls)
        for owner, name in CALLS:
            setattr(owner, name, countdown.before(getattr(owner, name)))
        LineWriter.write = torn(countdown)
        translate(folder, 0.02 if seconds else 0.0)
    except SystemExit as exit_:
        status = exit_.code
    finally:
        os._exit(status)


def check(folder):
    """Finishes the file and compares it."""
    out = folder / "out"
    assert not (out / "out").exists() or (out / "out").read_text() == EXPECTED
    assert child(folder) == 0
    assert (out / "out").read_text() == EXPECTED
    assert [entry.name for entry in out.iterdir()] == ["out"]
    (out / "out").unlink()


def kill(folder, draw, count):
    """Kills once at every call, then after random times; returns how many calls."""
    (folder / "out").mkdir()
    (folder / "in").write_text("".join(f"{line}\n" for line in LINES))
    with contextlib.suppress(SystemExit):
        translate(folder)  # imports in this process what every child would import again
    check(folder)
    moment = 1
    while child(folder, moment) == -signal.SIGKILL:
        # Continued, and killed again.
        child(folder, draw.randrange(1, 2 * moment))
        check(folder)
        moment += 1
    (folder / "out" / "out").unlink(missing_ok=True)
    for _ in range(count):
        for _ in range(3):
            child(folder, seconds=draw.uniform(0.005, 0.2))
        check(folder)
    return moment - 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="empty folder to work in")
    parser.add_argument("--random", type=int, default=20, help="more files (20)")
    options = parser.parse_args()
    moments = kill(options.folder, random.Random(3), options.random)
    assert not any(name in sys.modules for name in ("keras", "tensorflow"))
    print(f"killed at {moments} calls: every file that was continued is complete")


if __name__ == "__main__":
    main()
