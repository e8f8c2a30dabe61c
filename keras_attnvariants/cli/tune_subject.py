"""What `kav tune` searches: a preset and a space, or a baseline and its hybrids."""

import dataclasses
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any
from typing import NamedTuple

import typer

from keras_attnvariants.cli.train import given

if TYPE_CHECKING:
    from keras_attnvariants.data import Corpus
    from keras_attnvariants.presets import Preset
    from keras_attnvariants.tuning import SearchSpace

PRESET = "kav/hc-sa/multi30k"


class Explored(NamedTuple):
    """What is trained where the space says nothing else, and the space."""

    preset: "Preset"
    space: "SearchSpace"


@dataclass(frozen=True)
class Subject:
    """What is searched, as it was given.

    Attributes:
        space: a TOML file, or a name.
        baseline: folder of a run, in the place of a space.
        distance, nearness: what counts as near in the baseline, see `propose_hybrids`.
        preset: name of the preset; `None` for the default, or that of the baseline.
        sizes: options of the preset that were given.

    Raises:
        ValueError: neither a space nor a baseline is given, or both, or a baseline and
            what it decides by itself.
        FileNotFoundError: the baseline is no run.
    """

    space: str | None
    baseline: Path | None
    distance: int
    nearness: float
    preset: str | None
    sizes: dict[str, Any]

    def __post_init__(self) -> None:
        if (self.space is None) == (self.baseline is None):
            count = "neither" if self.space is None else "both"
            raise ValueError(
                f"Give either --space or --from-locality. Received: {count}"
            )
        if self.baseline is None:
            return
        if not (self.baseline / "log.jsonl").is_file():
            raise FileNotFoundError(
                "`--from-locality` must be the folder of a run, with log.jsonl. "
                f"Received: {self.baseline}"
            )
        if self.preset or self.sizes:
            raise ValueError(
                "--from-locality has the preset and the sizes of its run: leave out "
                f"--preset and sizes. Received: {self.preset or self.sizes}"
            )

    def explore(self, corpus: "Corpus") -> Explored:
        """The preset and the space; of a baseline, the proposal is printed.

        Raises:
            ValueError: something is unknown or does not fit, or no head looks near.
            OSError: a file cannot be read.
        """
        from keras_attnvariants import presets

        if self.baseline is not None:
            return self._propose(self.baseline, corpus)
        preset = with_sizes(presets.get(self.preset or PRESET), self.sizes)
        return Explored(preset, load_space(str(self.space), preset))

    def _propose(self, run: Path, corpus: "Corpus") -> Explored:
        from rich.console import Console

        from keras_attnvariants.tuning import propose_hybrids

        proposal = propose_hybrids(
            run, corpus, distance=self.distance, nearness=self.nearness
        )
        Console().print(proposal)
        if len(proposal.hybrids) == 1:
            raise ValueError(
                f"No layer of {run} looks near enough to be replaced: nothing to "
                f"train, or try a larger --distance or a smaller --nearness. "
                f"Received: {self.distance} and {self.nearness}"
            )
        typer.echo(f"To be trained: {', '.join(proposal.hybrids)}.")
        return Explored(proposal.preset, proposal.space)


def sizes_given(
    vocabulary_size: int | None,
    layers: int | None,
    width: int | None,
    feed_forward: int | None,
    heads: int | None,
) -> dict[str, int]:
    """The sizes that were given, as presets call them."""
    return given(
        vocabulary_size=vocabulary_size,
        num_layers=layers,
        hidden_dim=width,
        intermediate_dim=feed_forward,
        num_heads=heads,
    )


def with_sizes(preset: Any, sizes: dict[str, Any]) -> Any:
    """A preset with other sizes, which its search spaces are made for.

    Raises:
        ValueError: the preset has no such size.
    """
    if unknown := sorted(sizes.keys() - preset.options.keys()):
        raise ValueError(
            f"{preset.name} has no {', '.join(unknown)}, only "
            f"{', '.join(preset.options)}. Received: {sizes}"
        )
    return dataclasses.replace(preset, options={**preset.options, **sizes})


def load_space(spec: str, preset: Any) -> Any:
    """A search space from a TOML file, or by its name.

    Raises:
        ValueError: the file is no TOML or describes no space, or the name is unknown.
        OSError: the file cannot be read.
    """
    from keras_attnvariants.tuning import SearchSpace
    from keras_attnvariants.tuning import named_space

    path = Path(spec)
    if path.suffix != ".toml":
        return named_space(spec, preset)
    try:
        values = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is no TOML: {error}") from error
    return SearchSpace.from_dict(values)
