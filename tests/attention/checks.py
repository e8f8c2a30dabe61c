"""Runs the conformance tests on layers that are registered only temporarily."""

import inspect
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import keras
import pytest

from keras_attnvariants import attention
from keras_attnvariants import backend
from keras_attnvariants.attention import registry
from tests import reference
from tests.attention import test_conformance
from tests.attention import test_conformance_cost
from tests.attention import test_conformance_dropout
from tests.attention import test_conformance_keras
from tests.attention import test_conformance_step
from tests.attention.broken import BROKEN
from tests.attention.broken import Broken
from tests.attention.conformance import Case

MODULES = (
    test_conformance,
    test_conformance_step,
    test_conformance_keras,
    test_conformance_dropout,
    test_conformance_cost,
)


def base_of(cls) -> str:
    """The registered variant from which a class is derived."""
    return next(base.__name__ for base in cls.__mro__[1:] if is_registered(base))


def is_registered(cls) -> bool:
    return cls.__name__ in attention.variants()


@contextmanager
def registered(layer: Broken) -> Iterator[Case]:
    """Registers a layer temporarily, with the reference of the class it derives from.

    Yields:
        The case of the layer.
    """
    name, known = layer.cls.__name__, dict(keras.saving.get_custom_objects())
    reference.REFERENCES[name] = reference.REFERENCES[base_of(layer.cls)]
    attention.register_attention("none", (layer.arguments,))(layer.cls)
    try:
        yield Case(name, layer.role, 0, layer.dtype)
    finally:
        del registry._variants[name], reference.REFERENCES[name]
        keras.saving.get_custom_objects().clear()
        keras.saving.get_custom_objects().update(known)


def checks(layer: Broken):
    """The tests that a layer would have to pass, by name without `test_`."""
    return {
        name.removeprefix("test_"): function
        for module in MODULES
        for name, function in vars(module).items()
        if name.startswith("test_") and is_meant(function, layer)
    }


def is_meant(check, layer: Broken) -> bool:
    """Whether a test has cases of the layer's role."""
    wanted = base_of(layer.cls), layer.role, layer.dtype
    return any(
        (case.variant, case.role, case.dtype) == wanted
        for names, values in parametrizations(check)
        for case in cases_among(names, values)
    )


def parametrizations(check) -> list[tuple[str, list]]:
    """Names and values of the `parametrize` marks of a test."""
    marks = getattr(check, "pytestmark", [])
    return [mark.args for mark in marks if mark.name == "parametrize"]


def cases_among(names: str, values: list) -> list[Case]:
    return [value.values[0] for value in values if names.startswith("case")]


def fails(check, case: Case) -> bool:
    """Whether a test fails on a case, with some of its other parameters."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for arguments in all_arguments(check, case, Path(folder)):
            try:
                check(**arguments)
            except pytest.skip.Exception:
                continue
            except Exception:  # a failure, whatever its kind
                return True
    return False


def all_arguments(check, case: Case, folder: Path) -> list[dict]:
    """Arguments of a test; steps are compiled, and the rest only where necessary."""
    wanted = inspect.signature(check).parameters
    is_compiled = check.__name__ == "test_step_equals_call" or backend.name() == "jax"
    known = {
        "case": case,
        "mode": "xla" if is_compiled else "eager",
        "tmp_path": folder,
    }
    given = {name: known[name] for name in wanted if name in known}
    for names, values in parametrizations(check):
        if not names.startswith("case"):
            keys = names.split(", ")
            rows = [getattr(value, "values", value) for value in values]
            return [{**given, **dict(zip(keys, row, strict=True))} for row in rows]
    return [given]


def caught_by(layer: Broken) -> list[str]:
    """The tests that fail on a layer."""
    with registered(layer) as case:
        return [name for name, check in checks(layer).items() if fails(check, case)]


def print_table() -> None:
    """Prints which tests catch which broken layer, in Markdown."""
    print("| what is broken | in | caught by |\n|---|---|---|")
    for layer in BROKEN.values():
        names = ", ".join(f"`{name}`" for name in caught_by(layer)) or "nothing"
        print(f"| {layer.flaw} | `{base_of(layer.cls)}` | {names} |", flush=True)
