"""An abort ends with a line, from whichever thread it comes."""

import subprocess
import sys

import pytest

START = "from keras_attnvariants.utils.aborts import forget_abort, tell_abort; "
IN_A_THREAD = "threading.Thread(target=os.abort).start(); time.sleep(60)"


def run(code):
    command = [sys.executable, "-c", f"import os, threading, time; {START}{code}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stderr


@pytest.mark.parametrize("abort", ["os.abort()", IN_A_THREAD])
def test_the_last_line_of_an_aborted_process(abort):
    assert run(f"tell_abort('Error: gone'); {abort}") == (2, "Error: gone\n")


def test_an_abort_is_one_again():
    status, error = run("tell_abort('Error: gone'); forget_abort(); os.abort()")
    assert status == -6
    assert "gone" not in error
