"""SavedModels that translate text to text: export, use in Python, servers, clients.

What is listed in `__all__` is imported when it is first used: a client needs no
TensorFlow.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING
from typing import Any

if TYPE_CHECKING:
    from keras_attnvariants.serving.client import AsyncClient
    from keras_attnvariants.serving.client import Client
    from keras_attnvariants.serving.deployment import write_deployment
    from keras_attnvariants.serving.export import export
    from keras_attnvariants.serving.operators import operators
    from keras_attnvariants.serving.results import SavedTranslation
    from keras_attnvariants.serving.results import Status
    from keras_attnvariants.serving.results import TargetScore
    from keras_attnvariants.serving.saved import SavedTranslator
    from keras_attnvariants.serving.verify import verify

__all__ = [
    "AsyncClient",
    "Client",
    "SavedTranslation",
    "SavedTranslator",
    "Status",
    "TargetScore",
    "export",
    "operators",
    "verify",
    "write_deployment",
]

# The module that a name lives in.
_HOME = {
    "AsyncClient": "client",
    "Client": "client",
    "SavedTranslation": "results",
    "SavedTranslator": "saved",
    "Status": "results",
    "TargetScore": "results",
    "export": "export",
    "operators": "operators",
    "verify": "verify",
    "write_deployment": "deployment",
}


class _Room(ModuleType):
    """Whoever imports the module `export` must not lose the function `export`."""

    def __setattr__(self, name: str, value: Any) -> None:
        if _HOME.get(name) == name and isinstance(value, ModuleType):
            value = getattr(value, name)
        super().__setattr__(name, value)


def __getattr__(name: str) -> Any:
    """Import the module that a public name lives in, on first use."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


sys.modules[__name__].__class__ = _Room
