"""Disks that fill up and processes that die while they write."""

import errno
import os
import signal

from keras_attnvariants.utils import files


def _after(limit, action):
    """A `write` that passes `limit` bytes in all, then does `action`."""
    write = files.NewFile.write
    left = limit

    def faulty(file, data):
        nonlocal left
        view = memoryview(data).cast("B")
        if len(view) > left:
            write(file, view[:left])
            left = 0
            action()
        left -= len(view)
        return write(file, view)

    return faulty


def full_disk_after(monkeypatch, limit):
    """Lets the disk be full after some more bytes."""

    def fail():
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(files.NewFile, "write", _after(limit, fail))


def die_after(limit):
    """Kills this process, without any clean-up, after some more bytes."""
    files.NewFile.write = _after(limit, lambda: os.kill(os.getpid(), signal.SIGKILL))
