"""What a layer takes and returns: options of Keras, inputs, and results.

What a layer cannot honour is refused with a reason, never ignored.
"""

from typing import Any

from keras_attnvariants.utils.typing import Memory
from keras_attnvariants.utils.typing import Tensor

# The default in Keras, and why a layer without the option cannot honour another value.
OPTIONS = {
    "num_heads": (1, "it is one wide layer"),
    "key_dim": (None, "it has no queries and keys; `value_dim` is the width of a head"),
    "value_dim": (None, "it has no values by head"),
    "dropout": (0.0, "it has no learned weights to drop"),
    "seed": (None, "it draws no random numbers"),
    "output_shape": (
        None,
        "its output is as wide as the query, as residual connections need it; a "
        "`Dense` layer after it gives another width",
    ),
    "attention_axes": (None, "its inputs are [batch, length, width]"),
    "sliding_window": (None, "`LocalAttention` has a window"),
    "flash_attention": (None, "it computes its weights itself"),
    "use_gate": (False, "its output has no gate"),
}


def without_keras_options(kind: str, options: dict[str, Any]) -> dict[str, Any]:
    """Options of a layer without those of Keras that have their default there.

    Args:
        kind: name of the class that does not have them.
        options: keyword arguments that are left when all of its own are taken.

    Raises:
        ValueError: one of them cannot be honoured.
    """
    for name in OPTIONS.keys() & options.keys():
        default, reason = OPTIONS[name]
        if options[name] != default:
            raise ValueError(
                f"`{name}` must be {default!r} for {kind}: {reason}. "
                f"Received: {name}={options[name]!r}"
            )
    return {name: value for name, value in options.items() if name not in OPTIONS}


def check_lengths(layer: Any, query: Tensor, value: Tensor) -> None:
    """Raises if query and value of self-attention have different static lengths."""
    lengths = query.shape[1], value.shape[1]
    if "cross" in layer.roles or None in lengths or lengths[0] == lengths[1]:
        return
    raise ValueError(
        f"`query` and `value` must have the same length: {type(layer).__name__} is "
        "self-attention. `keras_attnvariants.attention.variants('cross')` lists the "
        f"variants for cross-attention. Received: lengths {lengths}"
    )


def check_scores_wanted(layer: Any, wanted: bool) -> None:
    """Raises if weights are requested from a variant that has none."""
    if wanted and not layer.has_scores:
        raise ValueError(
            f"`return_attention_scores` must be False: {type(layer).__name__} has no "
            f"attention weights. Received: return_attention_scores={wanted}"
        )


def check_memory(layer: Any, memory: Memory) -> None:
    """Raises if `memory` is missing in cross-attention."""
    if memory is None and layer.roles == {"cross"}:
        raise ValueError(
            f"`memory` must be what `prepare` returned: {type(layer).__name__} is "
            "cross-attention. Received: None"
        )


def check_returned(layer: Any, method: str, found: Any, names: str) -> Any:
    """Returns `found` if it is a tuple with one entry for each name in `names`.

    A tensor must be rejected here because it would unpack along its batch.
    """
    if isinstance(found, tuple) and len(found) == len(names.split(",")):
        return found
    raise TypeError(
        f"`{method}` of {type(layer).__name__} must return a tuple ({names}). "
        f"Received: {type(found).__name__}"
    )


def check_weights(layer: Any, method: str, weights: Tensor | None) -> None:
    """Raises unless the requested weights were returned and have four axes."""
    shape = None if weights is None else tuple(weights.shape)
    if shape is None or len(shape) != 4:
        raise TypeError(
            f"`{method}` of {type(layer).__name__} must return weights with four axes "
            f"when they are requested. Received: shape {shape}"
        )
