"""Losses, metrics and learning-rate schedules, and exactly resumable training runs."""

from keras_attnvariants.training.callbacks import DivergedError
from keras_attnvariants.training.callbacks import StatefulCallback
from keras_attnvariants.training.config import TrainingConfig
from keras_attnvariants.training.devices import several_devices
from keras_attnvariants.training.folder import TrainingResult
from keras_attnvariants.training.limit import TimeLimit
from keras_attnvariants.training.losses import LabelSmoothedCrossEntropy
from keras_attnvariants.training.metrics import Perplexity
from keras_attnvariants.training.metrics import TokenCount
from keras_attnvariants.training.precision import faster_precision
from keras_attnvariants.training.processes import DifferentProcessesError
from keras_attnvariants.training.processes import ProcessLostError
from keras_attnvariants.training.progress import ProgressBar
from keras_attnvariants.training.run import train
from keras_attnvariants.training.runs import load_run
from keras_attnvariants.training.runs import train_preset
from keras_attnvariants.training.schedules import LinearDecay
from keras_attnvariants.training.schedules import NoamSchedule
from keras_attnvariants.training.settings import DifferentSettingsError
from keras_attnvariants.training.state import NonFiniteError
from keras_attnvariants.training.state import StateWriteError
from keras_attnvariants.training.state import TrainingState

__all__ = [
    "DifferentProcessesError",
    "DifferentSettingsError",
    "DivergedError",
    "LabelSmoothedCrossEntropy",
    "LinearDecay",
    "NoamSchedule",
    "NonFiniteError",
    "Perplexity",
    "ProcessLostError",
    "ProgressBar",
    "StateWriteError",
    "StatefulCallback",
    "TimeLimit",
    "TokenCount",
    "TrainingConfig",
    "TrainingResult",
    "TrainingState",
    "faster_precision",
    "load_run",
    "several_devices",
    "train",
    "train_preset",
]
