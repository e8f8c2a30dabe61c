"""Trained models by name: those that the package contains, and those on hubs.

Keras and TensorFlow are imported when a model is loaded, not before.
"""

from keras_attnvariants.trained.names import find_model as find_model
from keras_attnvariants.trained.names import load_model as load_model
from keras_attnvariants.trained.names import model_names as model_names
