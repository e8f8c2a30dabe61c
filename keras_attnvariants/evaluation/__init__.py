"""Quality and speed of translations, and parameter counts of models."""

from keras_attnvariants.evaluation.aligned_translations import (
    AlignedTranslations as AlignedTranslations,
)
from keras_attnvariants.evaluation.aligned_translations import (
    AlignedTranslator as AlignedTranslator,
)
from keras_attnvariants.evaluation.metrics import Score as Score
from keras_attnvariants.evaluation.metrics import corpus_score as corpus_score
from keras_attnvariants.evaluation.parameters import (
    ParameterSummary as ParameterSummary,
)
from keras_attnvariants.evaluation.parameters import (
    parameter_summary as parameter_summary,
)
from keras_attnvariants.evaluation.report import Report as Report
from keras_attnvariants.evaluation.report import Speed as Speed
from keras_attnvariants.evaluation.report import evaluate as evaluate
from keras_attnvariants.evaluation.report import measure_speed as measure_speed
