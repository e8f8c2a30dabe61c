"""What all models here share: vocabularies, special tokens, saving, quantization."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import keras
from keras import ops

from keras_attnvariants.attention.checks import check_optional
from keras_attnvariants.attention.checks import check_positive
from keras_attnvariants.models import templates
from keras_attnvariants.models.checks import check_token_ids


class TranslationModel(keras.Model):
    """Base class of the models: logits of a target, given its source.

    A subclass is called with `{"source_ids": [B, S], "target_ids": [B, T]}`, and it
    is a *step model*: `encode`, `initial_state` and `step` are all that decoding,
    scoring and serving know of it. Its constructor takes, besides its own arguments,
    `vocabulary_size`, `source_vocabulary_size`, `max_length`, `pad_id`, `bos_id` and
    `eos_id`, which become attributes.

    Args:
        arguments: `locals()` of the subclass's constructor, before it made any
            variable of its own; `get_config` returns them.

    Raises:
        ValueError: a size or id is out of range.
    """

    def __init__(self, arguments: Mapping[str, Any], **kwargs: Any):
        super().__init__(**kwargs)
        config = {
            name: value
            for name, value in arguments.items()
            if name not in ("self", "kwargs", "__class__")
        }
        # A proxy, because Keras makes the layers in a dict layers of the model.
        self._config = MappingProxyType(config)
        size = check_positive("vocabulary_size", config["vocabulary_size"])
        source_size = config["source_vocabulary_size"]
        self.vocabulary_size = size
        self.source_vocabulary_size = (
            check_optional("source_vocabulary_size", source_size) or size
        )
        self.max_length = check_positive("max_length", config["max_length"])
        for name in ("pad_id", "bos_id", "eos_id"):
            check_token_ids(size, **{name: config[name]})
            setattr(self, name, config[name])
        check_token_ids(self.source_vocabulary_size, pad_id=self.pad_id)
        self.quantization = None

    def compute_output_spec(self, inputs, training=None):
        shape = (*inputs["target_ids"].shape, self.vocabulary_size)
        return keras.KerasTensor(shape, dtype=self.compute_dtype)

    def quantize(self, mode=None, **kwargs: Any):
        """As in Keras; a quantized model is saved and loaded as one."""
        super().quantize(mode, **kwargs)
        self.quantization = mode

    def get_config(self) -> dict[str, Any]:
        config = {
            name: templates.serialize(value) for name, value in self._config.items()
        }
        config |= {"name": self.name, "dtype": self.dtype_policy.name}
        return config | {"quantization": self.quantization}

    @classmethod
    def from_config(cls, config, custom_objects=None):
        config = {name: templates.deserialize(value) for name, value in config.items()}
        quantization = config.pop("quantization", None)
        model = cls(**config)
        if quantization is not None:
            model.quantize(quantization)
        return model


def without_padding(weights, real):
    """Attention weights `[B, H, T, S]`, 0 in the rows of padding.

    Args:
        weights: float32.
        real: bool `[B, T]`, which positions are no padding.
    """
    return ops.where(real[:, None, :, None], weights, 0.0)
