"""Corpora on many machines, with Apache Beam (extra `beam`).

Beam is imported when a pipeline begins, not before.
"""

from keras_attnvariants.beam.preparation import prepare

__all__ = ["prepare"]
