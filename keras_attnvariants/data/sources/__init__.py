"""Registered corpora: importing this package registers all of them."""

from keras_attnvariants.data.sources import bible  # noqa: F401
from keras_attnvariants.data.sources import campaigns  # noqa: F401
from keras_attnvariants.data.sources import sentences  # noqa: F401
