"""Corpora and translations on many machines, with Apache Beam (extra `beam`).

Beam is imported when a pipeline begins, not before.
"""

from keras_attnvariants.beam.preparation import prepare
from keras_attnvariants.beam.translation import Translated
from keras_attnvariants.beam.translation import translate_files

__all__ = ["Translated", "prepare", "translate_files"]
