"""The nine recurrences of Rosendahl et al. (2021), one family per file.

A recurrence defines how the attention of `RecurrentCrossAttention` at one target
position depends on the previous position. It has options but no weights.

| name | class | equation |
|---|---|---|
| `"context"` | `PreviousContext` | 2 |
| `"weights"` | `PreviousWeights` | 3 |
| `"accumulated_weights"` | `AccumulatedWeights` | 4 |
| `"expanded_shared"` | `ExpandedShared` | 5 |
| `"expanded_full"` | `ExpandedFull` | 6 |
| `"expanded_head"` | `ExpandedHead` | 7 |
| `"expanded_head_key"` | `ExpandedHeadKey` | 8 |
| `"accumulated_energies"` | `AccumulatedEnergies` | 9 |
| `"subtracted_weights"` | `SubtractedWeights` | 10 |
"""

from typing import Any

from keras_attnvariants.attention.recurrences.base import Recurrence as Recurrence
from keras_attnvariants.attention.recurrences.context import (
    PreviousContext as PreviousContext,
)
from keras_attnvariants.attention.recurrences.energies import (
    AccumulatedEnergies as AccumulatedEnergies,
)
from keras_attnvariants.attention.recurrences.expanded import (
    ExpandedFull as ExpandedFull,
)
from keras_attnvariants.attention.recurrences.expanded import (
    ExpandedHead as ExpandedHead,
)
from keras_attnvariants.attention.recurrences.expanded import (
    ExpandedHeadKey as ExpandedHeadKey,
)
from keras_attnvariants.attention.recurrences.expanded import (
    ExpandedShared as ExpandedShared,
)
from keras_attnvariants.attention.recurrences.feedback import (
    AccumulatedWeights as AccumulatedWeights,
)
from keras_attnvariants.attention.recurrences.feedback import (
    PreviousWeights as PreviousWeights,
)
from keras_attnvariants.attention.recurrences.feedback import (
    SubtractedWeights as SubtractedWeights,
)
from keras_attnvariants.utils.checks import check_choice

RECURRENCES = {
    "context": PreviousContext,
    "weights": PreviousWeights,
    "accumulated_weights": AccumulatedWeights,
    "expanded_shared": ExpandedShared,
    "expanded_full": ExpandedFull,
    "expanded_head": ExpandedHead,
    "expanded_head_key": ExpandedHeadKey,
    "accumulated_energies": AccumulatedEnergies,
    "subtracted_weights": SubtractedWeights,
}


def get(recurrence: "str | Recurrence | dict[str, Any]") -> Recurrence:
    """The recurrence with a name or a serialized configuration, or the given one.

    Raises:
        ValueError: the name is unknown; the message lists all names.
        TypeError: `recurrence` is neither a name nor a recurrence.

    Example:

    >>> get("accumulated_energies")
    AccumulatedEnergies(rate=0.5, radius=5, renormalize=False, start='zeros')
    """
    if isinstance(recurrence, str):
        return RECURRENCES[check_choice("recurrence", recurrence, RECURRENCES)]()
    rule = "`recurrence` must be a name or a recurrence object."
    return Recurrence.of(recurrence, rule)
