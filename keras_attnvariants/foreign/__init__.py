"""Models of other toolkits: Marian, and Hugging Face's MarianMT.

Each is read into a `ForeignModel`. `converted` turns it into a model of this package.
"""

from keras_attnvariants.foreign.conversion import ForeignModel as ForeignModel
from keras_attnvariants.foreign.conversion import converted as converted
from keras_attnvariants.foreign.huggingface import read_huggingface as read_huggingface
from keras_attnvariants.foreign.marian import read_marian as read_marian
