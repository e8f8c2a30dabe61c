"""Losses, metrics and learning-rate schedules, and exactly resumable training runs."""

from keras_attnvariants.training.callbacks import DivergedError
from keras_attnvariants.training.callbacks import StatefulCallback
from keras_attnvariants.training.fine_tuning import FineTuning
from keras_attnvariants.training.losses import LabelSmoothedCrossEntropy
from keras_attnvariants.training.losses import Perplexity
from keras_attnvariants.training.losses import TokenCount
from keras_attnvariants.training.model_training import train
from keras_attnvariants.training.model_training import train_preset
from keras_attnvariants.training.optimizers import NoamSchedule
from keras_attnvariants.training.progress import ProgressBar
from keras_attnvariants.training.run_folder import TrainingResult
from keras_attnvariants.training.run_models import load_run
from keras_attnvariants.training.run_settings import DifferentSettingsError
from keras_attnvariants.training.several_devices import DifferentProcessesError
from keras_attnvariants.training.several_devices import ProcessLostError
from keras_attnvariants.training.several_devices import several_devices
from keras_attnvariants.training.state import NonFiniteError
from keras_attnvariants.training.state import StateWriteError
from keras_attnvariants.training.state import TrainingState
from keras_attnvariants.training.time_limits import TimedDecay
from keras_attnvariants.training.time_limits import TimeLimit
from keras_attnvariants.training.training_config import TrainingConfig
from keras_attnvariants.training.training_config import faster_precision
from keras_attnvariants.training.validation import ValidationScore

__all__ = [
    "DifferentProcessesError",
    "DifferentSettingsError",
    "DivergedError",
    "FineTuning",
    "LabelSmoothedCrossEntropy",
    "NoamSchedule",
    "NonFiniteError",
    "Perplexity",
    "ProcessLostError",
    "ProgressBar",
    "StateWriteError",
    "StatefulCallback",
    "TimeLimit",
    "TimedDecay",
    "TokenCount",
    "TrainingConfig",
    "TrainingResult",
    "TrainingState",
    "ValidationScore",
    "faster_precision",
    "load_run",
    "several_devices",
    "train",
    "train_preset",
]
