"""Quality and speed of translations, and where a model's parameters are."""

from keras_attnvariants.evaluation.aligned_translations import AlignedTranslations
from keras_attnvariants.evaluation.aligned_translations import AlignedTranslator
from keras_attnvariants.evaluation.metrics import Score
from keras_attnvariants.evaluation.metrics import corpus_bleu
from keras_attnvariants.evaluation.metrics import corpus_chrf
from keras_attnvariants.evaluation.metrics import corpus_rouge
from keras_attnvariants.evaluation.metrics import corpus_ter
from keras_attnvariants.evaluation.metrics import word_error_rate
from keras_attnvariants.evaluation.parameters import ParameterSummary
from keras_attnvariants.evaluation.parameters import parameter_summary
from keras_attnvariants.evaluation.report import Report
from keras_attnvariants.evaluation.report import Speed
from keras_attnvariants.evaluation.report import evaluate
from keras_attnvariants.evaluation.report import measure_speed

__all__ = [
    "AlignedTranslations",
    "AlignedTranslator",
    "ParameterSummary",
    "Report",
    "Score",
    "Speed",
    "corpus_bleu",
    "corpus_chrf",
    "corpus_rouge",
    "corpus_ter",
    "evaluate",
    "measure_speed",
    "parameter_summary",
    "word_error_rate",
]
