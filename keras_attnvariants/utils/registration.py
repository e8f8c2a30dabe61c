"""Keras can load what holds our classes before the rooms that define them are imported.

Keras finds a class by its name in a registry. `announce` enters a stand-in for each of
ours, which imports the real one when it is used. Neither Keras nor a room of ours has
to be imported for it: if Keras is not there yet, the stand-ins are entered as soon as
it is.
"""

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

PACKAGE = "keras_attnvariants"

# The classes that Keras may find in a file, by the room that registers them.
REGISTERED = {
    "backend": ("Dropout", "LayerNormalization"),
    "attention": (
        "AlibiAttention",
        "ConcatenatedNgram",
        "DotProductAttention",
        "HardCodedAttention",
        "HardCodedCrossAttention",
        "LinearAttention",
        "LocalAttention",
        "NeuralNgram",
        "PhraseAttention",
        "RecurrentCrossAttention",
        "RelativeBiasAttention",
        # Structures of phrase attention, and recurrences of cross-attention.
        "Heterogeneous",
        "Homogeneous",
        "Interleaved",
        "AccumulatedEnergies",
        "AccumulatedWeights",
        "ExpandedFull",
        "ExpandedHead",
        "ExpandedHeadKey",
        "ExpandedShared",
        "PreviousContext",
        "PreviousWeights",
        "SubtractedWeights",
    ),
    "models": (
        "ConcatenatedPositions",
        "Ensemble",
        "Seq2SeqLSTM",
        "SinusoidalPositions",
        "Transformer",
    ),
    "training": (
        "Adam",
        "AveragingAdam",
        "LabelSmoothedCrossEntropy",
        "LinearDecay",
        "NoamSchedule",
        "Perplexity",
        "TokenCount",
    ),
}


def announce() -> None:
    """Enters a stand-in for each class in Keras' registry, now or with Keras."""
    if "keras" in sys.modules:
        enter_all()
    elif not any(isinstance(finder, KerasFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, KerasFinder())


def enter_all() -> None:
    """Enters a stand-in for each class that is not registered yet."""
    registry = import_module("keras.saving").get_custom_objects()
    for room, names in REGISTERED.items():
        for name in names:
            registry.setdefault(f"{PACKAGE}>{name}", stand_in(room, name))


def stand_in(room: str, name: str) -> type:
    """A class that imports a room when it is used, and is then the one of that room."""

    def registered() -> Any:
        import_module(f"{PACKAGE}.{room}")
        return import_module("keras.saving").get_custom_objects()[f"{PACKAGE}>{name}"]

    class StandIn:
        """Stands in Keras' registry for a class whose room is not imported yet."""

        def __new__(cls, *args: Any, **kwargs: Any) -> Any:
            return registered()(*args, **kwargs)

        @classmethod
        def from_config(cls, config: dict[str, Any]) -> Any:
            return registered().from_config(config)

    StandIn.__name__ = StandIn.__qualname__ = name
    return StandIn


class KerasFinder(importlib.abc.MetaPathFinder):
    """Finds Keras where the other finders do, with a loader that enters stand-ins."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != "keras":
            return None
        for finder in sys.meta_path:
            if not isinstance(finder, KerasFinder) and hasattr(finder, "find_spec"):
                spec = finder.find_spec(fullname, path, target)
                if spec is not None and spec.loader is not None:
                    spec.loader = EnteringLoader(spec.loader)
                    return spec
        return None


class EnteringLoader(importlib.abc.Loader):
    """Loads Keras with its own loader, and enters the stand-ins afterwards."""

    def __init__(self, loader: Any) -> None:
        self.loader = loader

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        # What is asked of the loaded module, such as its source, is its own.
        module.__loader__ = self.loader
        if module.__spec__ is not None:
            module.__spec__.loader = self.loader
        self.loader.exec_module(module)
        enter_all()
