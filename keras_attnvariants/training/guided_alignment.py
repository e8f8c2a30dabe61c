"""Guided alignment: trains attention to the source to follow word alignments."""

import contextlib
import functools
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

import keras
from keras import ops

from keras_attnvariants.models.base import ALIGNMENTS
from keras_attnvariants.models.base import Guidance
from keras_attnvariants.training.training_config import TrainingConfig
from keras_attnvariants.utils.typing import Tensor

# Added to weights, so that the logarithm is finite.
EPSILON = 1e-9


@contextlib.contextmanager
def guided(model: keras.Model, config: TrainingConfig) -> Iterator[None]:
    """Context in which training adds the losses that the configuration asks for.

    Args:
        model: a `Transformer` or a `Seq2SeqLSTM`, if there is anything to guide.
        config: its `alignment_weight` and `ctc_weight` select the losses.

    Raises:
        ValueError: no attention of the model can be guided, or such a model has no CTC
            loss.
    """
    asked: dict[str, Any] = {}
    if config.alignment_weight is not None:
        asked["guidance"] = guidance_of(model, config)
    if config.ctc_weight is not None:
        asked["ctc_weight"] = config.ctc_weight
        if not hasattr(model, "ctc_weight"):
            raise ValueError(
                "`ctc_weight` needs a Transformer: the loss applies its output "
                "projection to the outputs of its encoder. "
                f"Received: a {type(model).__name__}"
            )
    for name, value in asked.items():
        setattr(model, name, value)
    try:
        yield
    finally:
        for name in asked:
            setattr(model, name, None)


def guidance_of(model: keras.Model, config: TrainingConfig) -> Guidance:
    """The alignment loss for the last but one of the layers that can be guided.

    In published experiments this layer aligns best even without guidance. Errors are
    those of `guided`.
    """
    layers = model.guidable_layers() if hasattr(model, "guidable_layers") else []
    if not layers:
        raise ValueError(
            "Guided alignment needs attention to the source whose weights are learned, "
            "such as DotProductAttention. Received: a model without"
        )
    loss = functools.partial(
        alignment_loss, weight=config.alignment_weight or 0.0, pad_id=model.pad_id
    )
    return Guidance(layers[-2:][0], loss)


def check_alignments(config: TrainingConfig, inputs: Any) -> None:
    """Raises `ValueError` if batches lack the alignments that training is to follow."""
    if config.alignment_weight is not None and ALIGNMENTS not in inputs:
        raise ValueError(
            "`alignment_weight` needs batches with alignments: load the corpus with "
            f"`alignments`. Received: inputs {sorted(inputs)}"
        )


def alignment_loss(
    weights: Tensor, inputs: Mapping[str, Tensor], weight: float, pad_id: int
) -> Tensor:
    """The distance of attention weights from given links (Garg et al. 2019, Eq. 3).

    With `n_i` links of target token `i`, and `N` real target tokens in the batch, EOS
    included:

        loss = -weight / N * sum over linked i, j of log(weights_ij) / n_i

    Padding and rows without links add nothing. The loss is divided by all real tokens,
    like the cross-entropy of the translation, so that several batches give the loss of
    one large batch.

    Args:
        weights: float32 `[B, T, S]`, rows that sum to 1.
        inputs: inputs of the model: `target_ids` `[B, T]`, and `alignments`, bool
            `[B, T, S]`.
        weight: factor of the loss.
        pad_id: id of padding.
    """
    links = ops.cast(inputs[ALIGNMENTS], "float32")
    count = ops.sum(links, axis=-1, keepdims=True)
    gold = links / ops.maximum(count, 1.0)
    real = ops.cast(ops.not_equal(inputs["target_ids"], pad_id), "float32")
    loss = -ops.sum(gold * ops.log(weights + EPSILON))
    return weight * loss / ops.maximum(ops.sum(real), 1.0)
