"""The environment of processes that are started, and what they print."""

import contextlib
import os
import pickle  # noqa: S403 (between processes of ours)
from collections.abc import Iterator
from typing import Any

from keras_attnvariants.utils.importing import import_tensorflow


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


def call_quietly(function: bytes, *arguments: Any) -> None:
    """Calls a pickled function, for which TensorFlow is imported without its greeting.

    The target of a process: it is pickled, since unpickling imports what it needs.
    """
    import_tensorflow()
    pickle.loads(function)(*arguments)  # noqa: S301 (ours)
