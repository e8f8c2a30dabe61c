"""Callbacks of the user, named by where they are to be imported from."""

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any


def load_callbacks(factories: Sequence[str]) -> list[Any]:
    """The callbacks that some functions return.

    Args:
        factories: each `package.module:function`, found as Python finds modules, or in
            the working directory. The function takes no arguments and returns one Keras
            callback or a list of them; a class of callbacks will do.

    Raises:
        ValueError: there is no such function, or it returns something else.
    """
    if factories and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    return [callback for factory in factories for callback in _made(factory)]


def _made(factory: str) -> list[Any]:
    import keras

    module, _, function = factory.partition(":")
    if not module or not function:
        raise ValueError(
            f"`--callback` must be `package.module:function`. Received: {factory}"
        )
    try:
        found = getattr(import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise ValueError(
            f"`--callback` cannot be imported: {error}. Received: {factory}"
        ) from error
    made = found() if callable(found) else found
    callbacks = list(made) if isinstance(made, (list, tuple)) else [made]
    for callback in callbacks:
        if not isinstance(callback, keras.callbacks.Callback):
            raise ValueError(
                "`--callback` must name a function that returns Keras callbacks. "
                f"Received: {factory}, which gives {callback!r}"
            )
    return callbacks
