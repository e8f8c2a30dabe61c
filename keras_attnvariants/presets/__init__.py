"""Published configurations by name: models, how they were trained, what they scored.

>>> from keras_attnvariants import presets
>>> preset = presets.get("you2020/hc-sa/iwslt16")
>>> preset.parameters
15476430
>>> preset.published.bleu["en-de"]
30.3

`presets.list()` returns all presets, or those that match a filter, as a sequence that
prints as a table.
"""

# Importing a paper's module registers its presets. Our own presets refer to the papers'
# presets and import them.
from keras_attnvariants.presets import kav as _kav  # noqa: F401
from keras_attnvariants.presets.preset import Preset
from keras_attnvariants.presets.preset import PublishedFigures
from keras_attnvariants.presets.preset import TrainingSettings
from keras_attnvariants.presets.registry import PresetList
from keras_attnvariants.presets.registry import get
from keras_attnvariants.presets.registry import list_presets as list
from keras_attnvariants.presets.registry import names
from keras_attnvariants.presets.registry import register

__all__ = [
    "Preset",
    "PresetList",
    "PublishedFigures",
    "TrainingSettings",
    "get",
    "list",
    "names",
    "register",
]
