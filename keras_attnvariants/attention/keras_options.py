"""Options of `keras.layers.MultiHeadAttention` that a variant may not have.

With Keras' default they are accepted and change nothing; with any other value they are
refused with a reason.
"""

from typing import Any

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
