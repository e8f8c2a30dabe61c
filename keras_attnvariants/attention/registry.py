"""The registry of attention variants, which tests and error messages use."""

import inspect
from collections.abc import Callable
from collections.abc import Mapping
from dataclasses import asdict
from dataclasses import dataclass
from typing import Any
from typing import Self

import keras

from keras_attnvariants.utils.checks import check_choice
from keras_attnvariants.utils.checks import check_known

# The name under which Keras registers classes of this package.
PACKAGE = "keras_attnvariants"

ROLES = ("encoder", "decoder", "cross")

# Arguments in examples of variants with queries, keys and values. Keys and values have
# different widths, so that a layer that confuses them fails.
WIDTHS = {"num_heads": 4, "key_dim": 3, "value_dim": 5}
PLAIN_EXAMPLES = ({"num_heads": 4}, {**WIDTHS, "use_bias": True})


@dataclass(frozen=True)
class Options:
    """Base class of objects that are options of a layer; their fields are saved."""

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments, in a form that can be written as JSON."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """The inverse of `get_config`."""
        return cls(**config)

    @classmethod
    def of(cls, given: Any, rule: str) -> Self:
        """Returns options that are an object of this class or its Keras serialization.

        Args:
            given: the options.
            rule: the sentence of the error message that says which options are valid.

        Raises:
            TypeError: they are something else.
        """
        if isinstance(given, dict):
            given = keras.saving.deserialize_keras_object(given)
        if not isinstance(given, cls):
            raise TypeError(f"{rule} Received: {given!r}")
        return given


class Saved:
    """Mixin for classes that Keras saves and whose options are attributes."""

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments, from the attributes of the same names."""
        config = super().get_config()  # type: ignore[misc]
        for cls in reversed(type(self).__mro__):
            if issubclass(cls, Saved):
                for name in inspect.signature(cls.__init__).parameters:
                    if name != "self" and hasattr(self, name):
                        value = getattr(self, name)
                        value = list(value) if isinstance(value, tuple) else value
                        config[name] = keras.saving.serialize_keras_object(value)
        return dict(config)


@dataclass(frozen=True)
class Variant:
    """One registered attention layer.

    Attributes:
        cls: the layer class.
        paper: the publication that defines it.
        examples: constructor arguments of typical instances, for 4 heads; the
            conformance suite runs each of them in every role that it supports.
    """

    cls: Any
    paper: str
    examples: tuple[Mapping[str, Any], ...]

    @property
    def roles(self) -> frozenset[str]:
        """The roles in which the layer can be used: encoder, decoder, cross.

        An instance may support only some of them; see its own `roles`.
        """
        return self.cls.roles

    def fitting(self, role: str) -> list[int]:
        """The indices of the examples that support a role."""
        layers = enumerate(self.cls(**arguments) for arguments in self.examples)
        return [number for number, layer in layers if role in layer.roles]


_variants: dict[str, Variant] = {}


def register_attention(
    paper: str, examples: tuple[Mapping[str, Any], ...]
) -> Callable[[Any], Any]:
    """Class decorator that registers an attention layer under its class name.

    This also registers the class with Keras serialization (package
    `keras_attnvariants`). The conformance suite then tests it, and `Transformer`
    suggests it as an alternative for the roles it supports.

    Args:
        paper: the publication that defines the variant.
        examples: constructor arguments for the conformance suite.
    """

    def decorate(cls: Any) -> Any:
        unknown = set(cls.roles) - set(ROLES)
        if unknown or not cls.roles:
            raise ValueError(
                f"`roles` of {cls.__name__} must be a non-empty subset of {ROLES}. "
                f"Received: {sorted(cls.roles)}"
            )
        _variants[cls.__name__] = Variant(cls, paper, tuple(examples))
        return keras.saving.register_keras_serializable(package=PACKAGE)(cls)

    return decorate


def variants(role: str | None = None) -> dict[str, Variant]:
    """All registered variants by class name, or those that support one role.

    Raises:
        ValueError: `role` is not one of encoder, decoder, cross.
    """
    if role is None:
        return dict(_variants)
    check_choice("role", role, ROLES)
    return {name: v for name, v in _variants.items() if role in v.roles}


def get(name: str) -> Variant:
    """The variant registered under a class name.

    Raises:
        ValueError: there is none; the message suggests similar names.
    """
    check_known("`keras_attnvariants.attention`", name, _variants)
    return _variants[name]
