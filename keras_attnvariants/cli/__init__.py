"""The command `kav`: train, evaluate, translate, export, list presets and corpora.

Each command has a module of its own. Keras and TensorFlow are imported by the work,
not by the options: `kav train --help` needs neither.
"""

from keras_attnvariants.cli.app import app

__all__ = ["app"]
