"""Losses, metrics and learning-rate schedules, and exactly resumable training runs."""

from keras_attnvariants.training.callbacks import DivergedError as DivergedError
from keras_attnvariants.training.callbacks import StatefulCallback as StatefulCallback
from keras_attnvariants.training.fine_tuning import FineTuning as FineTuning
from keras_attnvariants.training.losses import (
    LabelSmoothedCrossEntropy as LabelSmoothedCrossEntropy,
)
from keras_attnvariants.training.losses import Perplexity as Perplexity
from keras_attnvariants.training.losses import TokenCount as TokenCount
from keras_attnvariants.training.model_training import train as train
from keras_attnvariants.training.model_training import train_preset as train_preset
from keras_attnvariants.training.optimizers import NoamSchedule as NoamSchedule
from keras_attnvariants.training.progress import ProgressBar as ProgressBar
from keras_attnvariants.training.run_folder import TrainingResult as TrainingResult
from keras_attnvariants.training.run_models import load_run as load_run
from keras_attnvariants.training.run_settings import (
    DifferentSettingsError as DifferentSettingsError,
)
from keras_attnvariants.training.several_devices import (
    DifferentProcessesError as DifferentProcessesError,
)
from keras_attnvariants.training.several_devices import (
    ProcessLostError as ProcessLostError,
)
from keras_attnvariants.training.several_devices import (
    several_devices as several_devices,
)
from keras_attnvariants.training.state import NonFiniteError as NonFiniteError
from keras_attnvariants.training.state import StateWriteError as StateWriteError
from keras_attnvariants.training.state import TrainingState as TrainingState
from keras_attnvariants.training.time_limits import TimedDecay as TimedDecay
from keras_attnvariants.training.time_limits import TimeLimit as TimeLimit
from keras_attnvariants.training.training_config import TrainingConfig as TrainingConfig
from keras_attnvariants.training.training_config import (
    faster_precision as faster_precision,
)
from keras_attnvariants.training.validation import ValidationScore as ValidationScore
