"""The base class of all models: vocabularies, special tokens, search settings."""

import os
import warnings
from collections.abc import Callable
from collections.abc import Mapping
from dataclasses import asdict
from dataclasses import dataclass
from dataclasses import replace
from pathlib import Path
from typing import Any

import keras
from keras import ops

from keras_attnvariants import backend
from keras_attnvariants.models import templates
from keras_attnvariants.utils.checks import LARGEST_BEAM
from keras_attnvariants.utils.checks import check_choice
from keras_attnvariants.utils.checks import check_finite
from keras_attnvariants.utils.checks import check_integer
from keras_attnvariants.utils.checks import check_optional_integer
from keras_attnvariants.utils.files import write_file
from keras_attnvariants.utils.machine import check_extra
from keras_attnvariants.utils.typing import Size
from keras_attnvariants.utils.typing import Tensor

# `keras_attnvariants.data.tasks` describes them.
TASKS = ("translation", "summarisation", "speech")
# The name of the model input with which attention weights are compared.
ALIGNMENTS = "alignments"


@dataclass(frozen=True)
class SearchSettings:
    """The settings of a beam search that are stored in a model.

    A preset sets its paper's settings in the models that it builds; they are saved and
    loaded with the model. Search, translation, evaluation and export use them as
    defaults.

    Attributes:
        beam_size: number of hypotheses per sentence, at most 1000.
        length_penalty: exponent of the length normalization; 0 for none.
        extra_length: by how many tokens a target may exceed the positions of its
            source.
        min_length: smallest number of tokens before EOS, as for a summary.
        no_repeat_ngram: no `n` tokens in a row occur twice; 0 for no limit.

    Raises:
        ValueError: a value is out of range.

    Example:

    >>> from keras_attnvariants import presets
    >>> preset = presets.get("rosendahl2021/context/iwslt17-en-it")
    >>> model = preset.build(100, num_layers=1, hidden_dim=16, intermediate_dim=16)
    >>> settings = SearchSettings.of(model, length_penalty=1.0)
    >>> settings.beam_size, settings.length_penalty, settings.extra_length
    (12, 1.0, 50)
    """

    beam_size: int = 4
    length_penalty: float = 0.6
    extra_length: int = 50
    min_length: int = 0
    no_repeat_ngram: int = 0

    def __post_init__(self) -> None:
        if check_integer("beam_size", self.beam_size) > LARGEST_BEAM:
            raise ValueError(
                f"`beam_size` must be at most {LARGEST_BEAM}. "
                f"Received: {self.beam_size}"
            )
        for name in ("extra_length", "min_length", "no_repeat_ngram"):
            check_integer(name, getattr(self, name), minimum=0)
        check_finite("length_penalty", self.length_penalty)

    @classmethod
    def of(cls, model: Any, **given: Any) -> "SearchSettings":
        """The settings of a model, overridden by the given ones.

        Args:
            model: any step model; one without settings has the defaults.
            **given: fields of this class; `None` to keep the model's value.
        """
        own = getattr(model, "search_settings", cls())
        return replace(own, **{k: v for k, v in given.items() if v is not None})

    @classmethod
    def get(
        cls, identifier: "Mapping[str, Any] | SearchSettings | None"
    ) -> "SearchSettings":
        """Settings from an object, a dict of its fields, or `None` for the defaults."""
        if isinstance(identifier, SearchSettings):
            return identifier
        return cls(**(identifier or {}))

    def to_dict(self) -> dict[str, Any]:
        """The fields, as JSON can hold them."""
        return asdict(self)


@dataclass(frozen=True)
class Guidance:
    """A loss on attention weights that training with alignments adds.

    Attributes:
        layer: number of the decoder layer whose attention is guided, from 1.
        loss: function of the weights `[B, T, S]` and the model's inputs; a scalar.
    """

    layer: int
    loss: Callable[[Tensor, Mapping[str, Tensor]], Tensor]


class EncoderDecoder(keras.Model):
    """Base class of the models: logits of a target, given its source.

    A subclass is a *step model*: decoding, scoring and serving use only `call`,
    `encode`, `initial_state` and `step`; see `keras_attnvariants.decoding.StepModel`.
    Its `get_config` adds its own arguments to those of this class.

    Args:
        vocabulary_size: number of tokens.
        source_vocabulary_size: number of source tokens; `None` if source and target
            share one vocabulary.
        max_length: maximum length of a source or target, in tokens.
        pad_id, bos_id, eos_id: ids of the special tokens.
        search_settings: how the model is decoded by default, as `SearchSettings` or
            its fields; `None` for the defaults.
        task: name of the model's task, such as `"translation"`; see
            `keras_attnvariants.data.tasks`.
        **kwargs: as in `keras.Model`, such as `dtype` and `name`.

    Attributes:
        source_stride: number of source ids per encoder position: 1 for tokens,
            640 for the samples of a `SpeechFrontEnd`. `max_length` counts positions.
        quantization: the mode in which the model was quantized, or `None`.
        guidance: the `Guidance` that adds to the loss in training if the inputs have
            `"alignments"`, bool `[B, T, S]`; or `None`. It is not part of the
            configuration.

    Raises:
        ValueError: a size or id is out of range, or there is no such task.
    """

    def __init__(
        self,
        vocabulary_size: int,
        source_vocabulary_size: int | None = None,
        max_length: int = 512,
        pad_id: int = 0,
        bos_id: int = 2,
        eos_id: int = 3,
        search_settings: SearchSettings | Mapping[str, Any] | None = None,
        task: str = "translation",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.vocabulary_size = check_integer("vocabulary_size", vocabulary_size)
        self._source_vocabulary_size = check_optional_integer(
            "source_vocabulary_size", source_vocabulary_size
        )
        self.source_vocabulary_size = self._source_vocabulary_size or vocabulary_size
        self.max_length = check_integer("max_length", max_length)
        check_token_ids(vocabulary_size, pad_id=pad_id, bos_id=bos_id, eos_id=eos_id)
        check_token_ids(self.source_vocabulary_size, pad_id=pad_id)
        self.pad_id, self.bos_id, self.eos_id = pad_id, bos_id, eos_id
        self.search_settings = SearchSettings.get(search_settings)
        self.source_stride = 1
        self.task = check_choice("task", task, TASKS)
        self.quantization: str | None = None
        self.guidance: Guidance | None = None

    def guidable_layers(self) -> list[int]:
        """The decoder layers with learned attention weights over the source.

        Returns:
            Their numbers, from 1, in ascending order.
        """
        return []

    def guidance_of(
        self, inputs: dict[str, Tensor], training: bool | None
    ) -> Guidance | None:
        """The guidance of a call, or `None` if it adds nothing to the loss."""
        return self.guidance if training and ALIGNMENTS in inputs else None

    def compute_output_spec(
        self, inputs: dict[str, Tensor], training: bool | None = None
    ) -> keras.KerasTensor:
        shape = (*inputs["target_ids"].shape, self.vocabulary_size)
        return keras.KerasTensor(shape, dtype=self.compute_dtype)

    def quantize(self, mode: str | None = None, **kwargs: Any) -> None:
        """As in Keras, without its warnings. A quantized model is saved as one."""
        # Keras warns of every layer that has nothing to quantize.
        with warnings.catch_warnings(action="ignore"):
            super().quantize(mode, **kwargs)
        self.quantization = mode

    def export(
        self,
        filepath: str | os.PathLike[str],
        format: str = "tf_saved_model",
        verbose: bool | None = None,
        input_signature: Any = None,
        **kwargs: Any,
    ) -> None:
        """As in Keras: exports `call`, by default for sequences of any length.

        `keras_attnvariants.serving.export` exports a search, from text to text, and
        `keras_attnvariants.serving.export_onnx` the graphs for a search with ONNX. The
        output of an ONNX graph written on TensorFlow is `logits`.

        Raises:
            ValueError: there is no `input_signature` on JAX, which exports fixed
                lengths; the extra `onnx` is not installed; or ONNX lacks an operator.
        """
        if input_signature is None:
            if backend.name() == "jax":
                raise ValueError(
                    "`input_signature` must be given on JAX, which exports fixed "
                    "lengths: [{'source_ids': keras.InputSpec('int32', (None, 64)), "
                    "'target_ids': keras.InputSpec('int32', (None, 64))}]. "
                    "Received: None"
                )
            names = ("source_ids", "target_ids")
            inputs = {n: keras.InputSpec("int32", (None, None), name=n) for n in names}
            input_signature = [inputs]
        if format == "onnx" and backend.name() == "tensorflow":
            check_extra("Exporting to ONNX", "onnx", ("onnx", "tf2onnx"))
            from keras_attnvariants.backend.onnx_graphs import onnx_call

            opset = kwargs.get("opset_version")
            write_file(Path(filepath), onnx_call(self, input_signature, opset))
            return
        super().export(filepath, format, verbose, input_signature, **kwargs)

    def get_config(self) -> dict[str, Any]:
        return {
            "vocabulary_size": self.vocabulary_size,
            "source_vocabulary_size": self._source_vocabulary_size,
            "max_length": self.max_length,
            "pad_id": self.pad_id,
            "bos_id": self.bos_id,
            "eos_id": self.eos_id,
            "name": self.name,
            "dtype": self.dtype_policy.name,
            "search_settings": self.search_settings.to_dict(),
            "task": self.task,
            "quantization": self.quantization,
        }

    @classmethod
    def from_config(
        cls, config: dict[str, Any], custom_objects: Any = None
    ) -> "EncoderDecoder":
        config = {
            name: templates.deserialize(value, custom_objects)
            for name, value in config.items()
        }
        quantization = config.pop("quantization", None)
        model = cls(**config)
        if quantization is not None:
            model.quantize(quantization)
        return model


def no_alignment(tokens: Tensor, mask: Tensor) -> Tensor:
    """The alignment of a model without attention to the source: zeros `[B, K, S]`.

    Args:
        tokens: int `[B, K]`.
        mask: bool `[B, S]`.
    """
    return ops.zeros((*ops.shape(tokens), ops.shape(mask)[1]), "float32")


def check_token_ids(vocabulary_size: int, **ids: int) -> None:
    """Raises `ValueError` unless the special tokens are in the vocabulary.

    Args:
        vocabulary_size: number of tokens.
        **ids: ids by the names of the arguments.
    """
    for name, value in ids.items():
        if not 0 <= value < vocabulary_size:
            raise ValueError(
                f"`{name}` must be the id of one of {vocabulary_size} tokens. "
                f"Received: {value}"
            )


def check_length(name: str, length: Size | None, limit: int) -> None:
    """Raises `ValueError` if a length is statically known and exceeds `limit`."""
    if isinstance(length, int) and length > limit:
        raise ValueError(
            f"`{name}` must be at most {limit}, the number of positions. "
            f"Received: {length}"
        )
