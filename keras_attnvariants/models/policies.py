"""A model that computes in another precision."""

import keras


def with_policy(model: keras.Model, policy: str) -> keras.Model:
    """A model like another, with the same weights and another dtype policy.

    Args:
        model: a model of this package.
        policy: such as `"float32"` or `"mixed_bfloat16"`.
    """
    other = type(model).from_config(model.get_config() | {"dtype": policy})
    other.set_weights(model.get_weights())
    return other
