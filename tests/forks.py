"""Programs in processes forked from one that has imported what they need.

Importing TensorFlow takes seconds; forking a process that has imported it takes none.
All else is as if `python -m MODULE ARGUMENTS` had been started: the process has its own
environment and output, and ends or is killed without the others.

    with with_tensorflow() as forks:
        process = forks.start("keras_attnvariants", "compare", path)
        output, errors = process.communicate()
"""

import gc
import importlib
import json
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
# Seconds between two checks of a process that is waited for.
LOOK = 0.02


class Forks:
    """A process that imports modules, and forks one that runs a program when asked.

    Args:
        modules: modules that it imports; none of them may start a thread.
        environment: variables of the process and of those that it forks.
    """

    def __init__(self, *modules, **environment):
        self._outputs = tempfile.TemporaryDirectory()
        self._count = 0
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.forks", *modules],
            cwd=REPOSITORY,
            env={**os.environ, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._server.stdin.close()
        self._server.wait()
        self._server.stdout.close()
        self._outputs.cleanup()

    def start(self, module, *arguments, cwd=REPOSITORY, **environment):
        """Starts `python -m module arguments`; variables are added to the others."""
        self._count += 1
        output = Path(self._outputs.name) / str(self._count)
        program = module, *map(str, arguments)
        pid = self.ask("start", str(output), str(cwd), environment, program)
        return Fork(self, pid, output)

    def ask(self, *request):
        """Sends a request to the process, and returns its answer."""
        self._server.stdin.write(f"{json.dumps(request)}\n")
        self._server.stdin.flush()
        return json.loads(self._server.stdout.readline())


def with_tensorflow():
    """Processes that have imported TensorFlow and the toy trainings.

    They write to standard error only what a user would read.
    """
    return Forks("tests.training.toy", TF_CPP_MIN_LOG_LEVEL="3")


def with_jax():
    """Processes that have imported JAX, for Keras, and the toy trainings."""
    return Forks("tests.training.on_devices", KERAS_BACKEND="jax", JAX_PLATFORMS="cpu")


class Fork:
    """A process, with the methods of `subprocess.Popen` that tests need."""

    def __init__(self, forks, pid, output):
        self.pid = pid
        self.returncode = None
        self._forks = forks
        self._output = output

    def poll(self):
        """The exit status (negative: the signal that ended it), `None` before."""
        if self.returncode is None:
            self.returncode = self._forks.ask("poll", self.pid)
        return self.returncode

    def wait(self, timeout=None):
        """The exit status, once there is one."""
        end = time.monotonic() + (timeout or float("inf"))
        while self.poll() is None:
            if time.monotonic() > end:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout)
            time.sleep(LOOK)
        return self.returncode

    def communicate(self, timeout=None):
        """Standard output and standard error, once the process has ended."""
        self.wait(timeout)
        return tuple(
            self._output.with_suffix(suffix).read_text()
            for suffix in (".stdout", ".stderr")
        )

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self):
        self.send_signal(signal.SIGKILL)


def serve():
    """Serves requests on standard input; returns, in a new process, its program."""
    running = set()
    try:
        for line in sys.stdin:
            task, *arguments = json.loads(line)
            if task == "start":
                answer = os.fork()
                if answer == 0:
                    running.clear()
                    return become(*arguments)
                running.add(answer)
            else:
                answer = status(*arguments)
                if answer is not None:
                    running.remove(*arguments)
            print(json.dumps(answer), flush=True)
    finally:
        for pid in running:
            os.kill(pid, signal.SIGKILL)
    return None


def status(pid):
    """The exit status of a process; `None` while it runs."""
    found, code = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(code) if found else None


def become(output, cwd, environment, program):
    """Takes the streams, the folder and the variables of a program, and returns it."""
    for number, path in enumerate((os.devnull, f"{output}.stdout", f"{output}.stderr")):
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(file, number)
        os.close(file)
    os.chdir(cwd)
    os.environ.update(environment)
    return program


def main():
    for module in sys.argv[1:]:
        importlib.import_module(module)
    # So that collections in a new process leave the objects of this one alone.
    gc.freeze()
    program = serve()
    if program is not None:
        sys.argv[:] = program
        # The modules of a program have been imported before it runs.
        warnings.filterwarnings("ignore", ".*found in sys.modules", RuntimeWarning)
        runpy.run_module(program[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
