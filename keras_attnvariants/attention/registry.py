"""The list of attention variants: what is registered here is tested and offered."""

import difflib
from collections.abc import Callable
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import keras

from keras_attnvariants.utils.checks import check_choice

PACKAGE = "keras_attnvariants"
ROLES = ("encoder", "decoder", "cross")


@dataclass(frozen=True)
class Variant:
    """One registered attention layer.

    Attributes:
        cls: the layer class.
        paper: the publication that defines it.
        examples: constructor arguments of typical instances, for 4 heads; the
            conformance suite runs every one of them in every role that it fits.
    """

    cls: Any
    paper: str
    examples: tuple[Mapping[str, Any], ...]

    @property
    def roles(self) -> frozenset[str]:
        """Where the equation makes sense: encoder, decoder, cross.

        An instance may be made for some of them only: see its own `roles`.
        """
        return self.cls.roles

    def example_for(self, role: str) -> Mapping[str, Any] | None:
        """The first of the examples that fits a role; `None` if there is none."""
        fitting = self.fitting(role)
        return self.examples[fitting[0]] if fitting else None

    def fitting(self, role: str) -> list[int]:
        """The numbers of the examples that fit a role: not all that `cls` can be."""
        return [
            number
            for number, arguments in enumerate(self.examples)
            if role in self.cls(**arguments).roles
        ]


_variants: dict[str, Variant] = {}


def register_attention(
    paper: str, examples: tuple[Mapping[str, Any], ...]
) -> Callable[[Any], Any]:
    """Class decorator that registers an attention layer under its class name.

    The class becomes known to Keras serialization as well (package
    `keras_attnvariants`), to the conformance suite, and to `Transformer`, which
    names it among the alternatives for the roles it declares.

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
    """All registered variants by class name, or those that fit one role.

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
        ValueError: there is none; the message lists the nearest names.
    """
    if name in _variants:
        return _variants[name]
    near = difflib.get_close_matches(name, _variants, n=3, cutoff=0.3)
    hint = f"Did you mean {' or '.join(near)}?" if near else f"Known: {list(_variants)}"
    raise ValueError(f"No attention variant of this name. {hint} Received: {name!r}")
