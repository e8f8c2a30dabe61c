"""The environment of processes that are started, and what they print."""

import contextlib
import os
import pickle  # noqa: S403 (between processes of ours)
from collections.abc import Iterator
from typing import Any

from keras_attnvariants.utils.importing import import_tensorflow
from keras_attnvariants.utils.machine import cores


@contextlib.contextmanager
def environment(**variables: str) -> Iterator[None]:
    """Context in which processes start with these variables, unless they are set."""
    added = {k: v for k, v in variables.items() if k not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            del os.environ[name]


def shared_machine(
    processes: int, threads: int | None = None
) -> contextlib.AbstractContextManager[None]:
    """Context in which processes start that share the cores, and the memory of GPUs.

    Args:
        processes: how many run at a time.
        threads: of each; `None` shares the cores equally.
    """
    number = str(threads or max(1, cores() // processes))
    return environment(
        TF_NUM_INTRAOP_THREADS=number,
        TF_NUM_INTEROP_THREADS=number,
        OMP_NUM_THREADS=number,
        TF_FORCE_GPU_ALLOW_GROWTH="true",
    )


def call_quietly(function: bytes, *arguments: Any) -> None:
    """Calls a pickled function, for which TensorFlow is imported without its greeting.

    The target of a process: it is pickled, since unpickling imports what it needs.
    """
    import_tensorflow()
    pickle.loads(function)(*arguments)  # noqa: S301 (ours)
