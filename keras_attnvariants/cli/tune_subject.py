"""What `kav tune` searches: a preset and a space, or a baseline and its hybrids."""

import dataclasses
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Annotated
from typing import Any
from typing import NamedTuple

import typer

if TYPE_CHECKING:
    from keras_attnvariants.data import Corpus
    from keras_attnvariants.presets import Preset
    from keras_attnvariants.tuning import SearchSpace

PRESET = "kav/hc-sa/multi30k"


class Explored(NamedTuple):
    """What is trained where the space says nothing else, and the space."""

    preset: "Preset"
    space: "SearchSpace"


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What is searched, as it was given.

    Raises:
        ValueError: neither a space nor a baseline is given, or both, or an option
            lacks the baseline.
        FileNotFoundError: the baseline is no run.
    """

    space: Annotated[
        str | None,
        typer.Option(
            help="What varies: a TOML file, or a name (you2020/offsets, "
            "you2020/all-offsets, loem2022/layer-hybrids, attention, "
            "attention-per-layer, training).",
            show_default=False,
        ),
    ] = None
    from_locality: Annotated[
        Path | None,
        typer.Option(
            help="In the place of a space, the folder of a trained baseline: layers "
            "whose heads look near get cheaper attention. Ends with whether that is as "
            "good.",
            show_default=False,
        ),
    ] = None
    distance: Annotated[
        int | None,
        typer.Option(
            help="What counts as near, in tokens (2).", min=1, show_default=False
        ),
    ] = None
    nearness: Annotated[
        float | None,
        typer.Option(
            help="How near a layer must look to get it: from 0, even weights, to 1, "
            "nothing beyond the distance (0.25).",
            min=0,
            max=1,
            show_default=False,
        ),
    ] = None
    preset: Annotated[
        str | None,
        typer.Option(
            help="What is trained where the space says nothing else; default: "
            "kav/hc-sa/multi30k. Not with a baseline, which has its own.",
            show_default=False,
        ),
    ] = None

    def __post_init__(self) -> None:
        if (self.space is None) == (self.from_locality is None):
            count = "neither" if self.space is None else "both"
            raise ValueError(
                f"Give either --space or --from-locality. Received: {count}"
            )
        run = self.from_locality
        if run is None and (self.distance, self.nearness) != (None, None):
            raise ValueError("--distance and --nearness need --from-locality.")
        if run is not None and not (run / "log.jsonl").is_file():
            raise FileNotFoundError(
                "`--from-locality` must be the folder of a run, with log.jsonl. "
                f"Received: {run}"
            )

    def check(self, sizes: dict[str, Any]) -> None:
        """Raises if a baseline is given, and what it decides by itself.

        Raises:
            ValueError: it is.
        """
        if self.from_locality is not None and (self.preset or sizes):
            raise ValueError(
                "--from-locality has the preset and the sizes of its run: leave out "
                f"--preset and sizes. Received: {self.preset or sizes}"
            )

    def explore(self, corpus: "Corpus", sizes: dict[str, Any]) -> Explored:
        """The preset and the space; of a baseline, the proposal is printed.

        Args:
            corpus: what a baseline is to translate.
            sizes: options of the preset that were given.

        Raises:
            ValueError: something is unknown or does not fit, or no head looks near.
            OSError: a file cannot be read.
        """
        from keras_attnvariants import presets

        if self.from_locality is not None:
            return self._propose(self.from_locality, corpus)
        preset = with_sizes(presets.get(self.preset or PRESET), sizes)
        return Explored(preset, load_space(str(self.space), preset))

    def _propose(self, run: Path, corpus: "Corpus") -> Explored:
        from rich.console import Console

        from keras_attnvariants.tuning import propose_hybrids
        from keras_attnvariants.tuning.proposal import DISTANCE
        from keras_attnvariants.tuning.proposal import NEARNESS

        distance = DISTANCE if self.distance is None else self.distance
        nearness = NEARNESS if self.nearness is None else self.nearness
        proposal = propose_hybrids(run, corpus, distance=distance, nearness=nearness)
        Console().print(proposal)
        if len(proposal.hybrids) == 1:
            raise ValueError(
                f"No layer of {run} looks near enough to be replaced: nothing to "
                f"train, or try a larger --distance or a smaller --nearness. "
                f"Received: {distance} and {nearness}"
            )
        typer.echo(f"To be trained: {', '.join(proposal.hybrids)}.")
        return Explored(proposal.preset, proposal.space)


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
