"""Options of commands that draw translations at random."""

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING
from typing import Annotated
from typing import NamedTuple

import typer

if TYPE_CHECKING:
    from keras_attnvariants import Translator
    from keras_attnvariants.serving import SavedTranslator


class Sampling(NamedTuple):
    """How translations are drawn; the fields are those of `kav.decoding.sample`."""

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0

    def translations(
        self, translator: "Translator | SavedTranslator", texts: list[str]
    ) -> list[str]:
        """A translation of each text, whatever the other texts are."""
        how = (self.temperature, self.top_k, self.top_p)
        seeds = [seed_of(self.seed, text) for text in texts]
        return [drawn.text for drawn in translator.sample(texts, *how, seed=seeds)]


@dataclass(frozen=True, kw_only=True)
class SamplingOptions:
    """Whether translations are drawn, and how."""

    sample: Annotated[
        bool,
        typer.Option(
            "--sample",
            help="Draw each translation from the probabilities of the model instead of "
            "searching for the best, for back-translation for instance. A sentence has "
            "the same translation wherever it stands; another --seed gives another "
            "one.",
        ),
    ] = False
    temperature: Annotated[
        float,
        typer.Option(
            help="With --sample: below 1, probable words become more so; 0 is greedy "
            "search.",
            min=0,
        ),
    ] = 1.0
    top_k: Annotated[
        int,
        typer.Option(help="With --sample: how many words may be drawn; 0: all.", min=0),
    ] = 0
    top_p: Annotated[
        float,
        typer.Option(
            help="With --sample: draw from the fewest words that have this share of "
            "the probability together.",
            min=0,
            max=1,
        ),
    ] = 1.0
    seed: Annotated[
        int, typer.Option(help="With --sample: of the random numbers.", min=0)
    ] = 0

    def chosen(self) -> Sampling | None:
        """How to draw, or `None` if nothing is drawn.

        Raises:
            ValueError: options of sampling are given without it.
        """
        sampling = Sampling(self.temperature, self.top_k, self.top_p, self.seed)
        if not self.sample and sampling != Sampling():
            raise ValueError(
                "--temperature, --top-k, --top-p and --seed need --sample. "
                f"Received: {sampling}"
            )
        return sampling if self.sample else None


def seed_of(seed: int, text: str) -> int:
    """A seed for one text, from the seed of all."""
    digest = hashlib.sha256(f"{seed}\n{text}".encode("utf-8", "replace")).digest()
    return int.from_bytes(digest[:4], "big") >> 1
