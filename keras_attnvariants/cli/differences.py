"""Settings in which two runs differ, by the names of their options."""

from collections.abc import Iterator
from contextlib import contextmanager

# Options of `kav train` by the names of the arguments that they set, where a hyphen for
# an underscore is not all that differs.
OPTIONS = {
    "num_layers": "--layers",
    "hidden_dim": "--width",
    "intermediate_dim": "--feed-forward",
    "num_heads": "--heads",
    "clipnorm": "--clip-norm",
    "model_type": "--subwords",
    "corpus": "--data",
    "train_sentences": "--data, training sentences with sha256",
    "alignments": "--alignments, links with sha256",
    "validation_sentences": "--data, validation sentences with sha256",
}
SAME_NAMES = (
    "accumulate",
    "alignment_head",
    "alignment_layer",
    "alignment_weight",
    "batch_tokens",
    "character_coverage",
    "data_temperature",
    "data_weight",
    "dropout",
    "ema",
    "label_smoothing",
    "learning_rate",
    "precision",
    "preset",
    "seed",
    "source_tag",
    "validate_every",
    "vocabulary_size",
    "warmup_steps",
)


@contextmanager
def named_by_options() -> Iterator[None]:
    """Context in which a refusal to resume a run names the options of `kav train`."""
    from keras_attnvariants.training import DifferentSettingsError

    options = {name: f"--{name.replace('_', '-')}" for name in SAME_NAMES}
    try:
        yield
    except DifferentSettingsError as error:
        raise ValueError(error.message(OPTIONS | options)) from error
