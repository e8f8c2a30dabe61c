"""What systems cost, in the units that the page shows."""

from typing import NamedTuple

from keras_attnvariants.experiments.results import ComparisonResult


class Shown(NamedTuple):
    """How a cost is shown.

    Attributes:
        name: in the middle of a sentence.
        unit: after a value.
        factor: from what was measured to that unit.
        digits: after the point.
    """

    name: str
    unit: str
    factor: float = 1.0
    digits: int = 0

    @property
    def heading(self) -> str:
        """With the unit, as a heading."""
        return f"{self.name[0].upper()}{self.name[1:]} ({self.unit})"


# By the names of `experiments.results.COSTS`.
SHOWN = {
    "parameters": Shown("number of parameters", "million", 1e-6, 2),
    "updates": Shown("number of updates", "thousand", 1e-3, 1),
    "seconds": Shown("training time", "min", 1 / 60, 1),
    "cpu_seconds": Shown("processor time", "min", 1 / 60, 1),
    "tokens_per_second": Shown("training speed", "tokens/s"),
    "memory_mib": Shown("peak memory", "MiB"),
    "sentences_per_second": Shown("decoding speed", "sentences/s", digits=1),
}
# What the summary speaks of, if it is known; the first is in the picture.
SPOKEN = ("seconds", "parameters", "sentences_per_second", "memory_mib")


def values(result: ComparisonResult, name: str) -> dict[str, float]:
    """A cost of each system for which it is known, in the unit that is shown."""
    found = {system.name: result.costs(system.name)[name] for system in result.systems}
    factor = SHOWN[name].factor
    return {
        system: factor * value for system, value in found.items() if value is not None
    }


def main_cost(result: ComparisonResult) -> str:
    """The cost that quality is weighed against: the first that is known."""
    known = (name for name in SPOKEN if values(result, name))
    return next(known, SPOKEN[0])
