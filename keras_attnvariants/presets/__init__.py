"""Published configurations by name: models, how they were trained, what they scored.

>>> from keras_attnvariants import presets
>>> preset = presets.get("you2020/hc-sa/iwslt16")
>>> preset.parameters
15476430
>>> preset.published.bleu["en-de"]
30.3
"""

# Importing a paper's module registers its presets; ours, which refer to them, import
# those of all papers.
from keras_attnvariants.presets import kav as _kav  # noqa: F401
from keras_attnvariants.presets.preset import Preset
from keras_attnvariants.presets.preset import Published
from keras_attnvariants.presets.preset import Training
from keras_attnvariants.presets.registry import get
from keras_attnvariants.presets.registry import names
from keras_attnvariants.presets.registry import print_table as list
from keras_attnvariants.presets.registry import register

__all__ = ["Preset", "Published", "Training", "get", "list", "names", "register"]
