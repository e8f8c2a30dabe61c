"""Attention weights to the source that a loss is computed of, besides the logits."""

from collections.abc import Callable
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from keras import ops

from keras_attnvariants.utils.typing import Tensor

# The name of what the weights are compared with, among the inputs of a model.
ALIGNMENTS = "alignments"


@dataclass(frozen=True)
class Guidance:
    """What a model that is trained with alignments adds to its loss.

    Attributes:
        layer: number of the decoder layer whose attention is guided, from 1.
        head: number of its head, from 1; `None` for the mean of all heads.
        loss: of the weights `[B, T, S]` and the inputs of the model, a scalar.
    """

    layer: int
    head: int | None
    loss: Callable[[Tensor, Mapping[str, Tensor]], Tensor]

    def alignment(self, attention: Any, scores: Tensor) -> Tensor:
        """The weights of source tokens that are guided, `[B, T, S]`.

        Args:
            attention: the attention layer.
            scores: its weights `[B, H, T, S]`; of phrases, those of n-grams.
        """
        if hasattr(attention, "token_scores"):
            scores = attention.token_scores(scores)
        if self.head is None:
            return ops.mean(scores, axis=1)
        return scores[:, self.head - 1]
