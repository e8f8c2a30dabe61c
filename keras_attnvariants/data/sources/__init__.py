"""Registered corpora: importing this package registers all of them."""

from keras_attnvariants.data.sources import bible  # noqa: F401
from keras_attnvariants.data.sources import iwslt  # noqa: F401
from keras_attnvariants.data.sources import multi30k  # noqa: F401
from keras_attnvariants.data.sources import tatoeba  # noqa: F401
from keras_attnvariants.data.sources import wmt  # noqa: F401
