"""A folder in which one process works at a time."""

import contextlib
import json
import os
import socket
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from keras_attnvariants.utils.files import open_plain
from keras_attnvariants.utils.files import read_json

LOCK = "lock.json"


class FolderInUseError(OSError):
    """Another process is at work in the folder."""


@contextlib.contextmanager
def lock_folder(folder: Path, wait: bool = False) -> Iterator[None]:
    """Context that nobody else can enter for this folder, in this process or another.

    `lock.json` in the folder says who has the lock. It is removed at the end, and so is
    the folder if it was made here and is empty. See `open_locked` for the lock.

    Args:
        folder: created if it is not there.
        wait: whether to wait while another process is at work in it.

    Raises:
        FolderInUseError: another process is at work in it.
        OSError: the folder cannot be written.
    """
    folder = folder.resolve()
    is_new = not folder.exists()
    descriptor = _acquire(folder, wait)
    try:
        yield
    finally:
        with contextlib.suppress(PermissionError):  # Windows keeps open files
            (folder / LOCK).unlink(missing_ok=True)
        os.close(descriptor)
        if is_new:
            with contextlib.suppress(OSError):
                folder.rmdir()


def open_locked(path: Path, wait: bool = False) -> int:
    """Opens a file, created if needed, that no other process can open in this way.

    The lock is the operating system's (`flock`): it ends with the process, however
    that ends. On network file systems, it depends on the server whether the lock works
    across machines. Where the file system has no locks at all, a line on standard error
    says so.

    Args:
        path: the file.
        wait: whether to wait while another process has it.

    Returns:
        The descriptor, to be closed.

    Raises:
        BlockingIOError: another process has it.
        NotPlainFileError: it is a link or a pipe.
        OSError: it cannot be written.
    """
    while True:
        descriptor = open_plain(path, os.O_RDWR | os.O_CREAT)
        try:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            os.close(descriptor)
            raise
        except (OSError, ImportError) as error:  # Windows has no such module
            print(
                f"{path} cannot be locked ({error}): a second process at work would "
                "not be noticed.",
                file=sys.stderr,
            )
        # The process that had the lock may have removed or renamed the file.
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), path.lstat()):
                return descriptor
        os.close(descriptor)


def _acquire(folder: Path, wait: bool) -> int:
    """The descriptor of the locked file, in which others read who has it."""
    while True:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            descriptor = open_locked(folder / LOCK, wait)
        except FileNotFoundError:
            continue  # the folder was removed in between
        except BlockingIOError:
            raise FolderInUseError(
                f"{folder} is in use by {_holder(folder / LOCK)}. Wait until it has "
                "ended, or choose another folder"
            ) from None
        holder = {
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "since": datetime.now().astimezone().isoformat(" ", "seconds"),
        }
        os.ftruncate(descriptor, 0)
        # The lock holds on a full disk too.
        with contextlib.suppress(OSError):
            os.write(descriptor, json.dumps(holder).encode())
        return descriptor


def _holder(path: Path) -> str:
    try:
        holder = read_json(path)
        return f"process {holder['pid']} on {holder['host']} since {holder['since']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
