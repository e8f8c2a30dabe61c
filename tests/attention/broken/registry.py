"""The list of layers that are broken on purpose."""

from collections.abc import Callable
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Broken:
    """A broken layer, and the tests that must catch it.

    Attributes:
        cls: the layer; the first line of its docstring says what is wrong.
        role: role in which it is tested.
        arguments: arguments of its constructor.
        dtype: the dtype policy.
        caught_by: names of tests, without `test_`.
    """

    cls: Any
    role: str
    arguments: Mapping[str, Any]
    dtype: str
    caught_by: tuple[str, ...]

    @property
    def flaw(self) -> str:
        """The fault, in words."""
        return self.cls.__doc__.splitlines()[0].rstrip(".")


BROKEN: dict[str, Broken] = {}


def broken(
    role: str, *caught_by: str, dtype: str = "float32", **arguments: Any
) -> Callable[[Any], Any]:
    """Adds a class to `BROKEN`."""

    def decorate(cls: Any) -> Any:
        BROKEN[cls.__name__] = Broken(cls, role, arguments, dtype, caught_by)
        return cls

    return decorate
