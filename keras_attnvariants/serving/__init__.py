"""SavedModels that translate text to text, in TensorFlow Serving or in Python."""

from keras_attnvariants.serving.export import export
from keras_attnvariants.serving.operators import operators
from keras_attnvariants.serving.saved import SavedTranslator

__all__ = ["SavedTranslator", "export", "operators"]
