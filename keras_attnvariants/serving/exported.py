"""Step models with the weights of an export: stored once, and constants where it pays.

A model and what it is exported in (see `keras_attnvariants.serving.precision`) give an
`ExportedModel`; all graphs of an export are traced from its `inference_copy` alone.
"""

from typing import Any

import keras

from keras_attnvariants.backend import inference_copy
from keras_attnvariants.backend import shallow_copy
from keras_attnvariants.serving.weights import StoredWeights
from keras_attnvariants.utils.typing import NestedTensors
from keras_attnvariants.utils.typing import Tensor

# Of the weights in a graph, which may have 2 GB.
MAX_CONSTANT_BYTES = 1_500_000_000

ATTRIBUTES = (
    "vocabulary_size",
    "source_vocabulary_size",
    "max_length",
    "pad_id",
    "bos_id",
    "eos_id",
    "unk_id",
    "search_settings",
    "embeddings",
)


def copy_attributes(model: Any, other: Any) -> None:
    """Gives another object what a step model has besides its methods."""
    for name in ATTRIBUTES:
        if hasattr(model, name):
            setattr(other, name, getattr(model, name))


class ExportedModel:
    """A step model that computes with stored weights.

    Args:
        model: a Keras model.
        weights: its weights, stored.
        constant: whether decoding steps have weights as constants of the graph. oneDNN
            then arranges them for the processor once, and a loop does not hand them
            on from step to step; with few sentences, that takes as long as the
            products. The graph is larger by the weights of the decoder.
    """

    def __init__(
        self, model: keras.Model, weights: StoredWeights, constant: bool
    ) -> None:
        copy_attributes(model, self)
        self.model = model
        self.weights = weights
        self.steps: Any = None
        if constant and weights.bytes <= MAX_CONSTANT_BYTES:
            self.steps = inference_copy(model, weights.array, fixed=True)

    def inference_copy(self) -> Any:
        """What computes in a graph that is being traced."""
        reading = inference_copy(self.model, self.weights.read, fixed=True)
        return reading if self.steps is None else TwoForms(reading, self.steps)


class TwoForms:
    """A step model of two copies: one encodes, the other makes the steps.

    Sources are encoded once for each request, and steps are many.
    """

    def __init__(self, encoder: Any, steps: Any) -> None:
        copy_attributes(encoder, self)
        self.encoder = encoder
        self.steps = steps

    def encode(self, source_ids: Tensor) -> NestedTensors:
        """As of the model."""
        return self.encoder.encode(source_ids)

    def initial_state(
        self, context: NestedTensors, beams: int, max_length: int
    ) -> NestedTensors:
        """As of the model."""
        return self.steps.initial_state(context, beams, max_length)

    def step(self, *args: Any, **options: Any) -> tuple[Any, ...]:
        """As of the model."""
        outputs: tuple[Any, ...] = self.steps.step(*args, **options)
        return outputs


class LimitedLogits:
    """Token embeddings with the logits of some tokens of each sentence.

    Args:
        embeddings: `TokenEmbeddings`.
        columns: what its method `columns` returned for these tokens.
    """

    def __init__(self, embeddings: Any, columns: dict[str, Tensor]) -> None:
        self.embed_step = embeddings.embed_step
        self.columns = columns

    def logits(self, x: Tensor) -> Tensor:
        """`[B, K, hidden_dim]` to `[B, K, W]`."""
        logits = x @ self.columns["kernel"]
        return logits + self.columns["bias"] if "bias" in self.columns else logits


def limited_step(model: Any, columns: dict[str, Tensor]) -> Any:
    """The method `step` of a copy, for the tokens of some columns of the logits."""
    steps = model.steps if isinstance(model, TwoForms) else model
    limited = LimitedLogits(steps.embeddings, columns)
    return shallow_copy(steps, embeddings=limited).step
