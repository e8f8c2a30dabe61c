"""Options of `kav train` about the corpora that it trains on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from typing import Annotated

import typer

from keras_attnvariants.cli.options import MaxInvalid

if TYPE_CHECKING:
    from keras_attnvariants.data import Corpus


@dataclass(frozen=True, kw_only=True)
class CorporaOptions:
    """Which corpora, and how often each of them is seen."""

    data: Annotated[
        list[str],
        typer.Option(
            help="A folder with train.en, train.de, validation.en, … (also .gz), a TSV "
            "file with two columns, or a name that `kav corpora` lists. May be "
            "repeated.",
            show_default=False,
        ),
    ]
    source: Annotated[
        list[str],
        typer.Option(
            help="Language to translate from: one for all, or one for each --data.",
            show_default=False,
        ),
    ]
    target: Annotated[
        list[str],
        typer.Option(
            help="Language to translate into: one for all, or one for each --data.",
            show_default=False,
        ),
    ]
    max_invalid: MaxInvalid = 0.01
    unique: Annotated[
        bool,
        typer.Option(
            "--unique",
            help="Leave out training sentences that came before in the same --data, "
            "with the same translation.",
        ),
    ] = False
    data_weight: Annotated[
        list[float] | None,
        typer.Option(
            help="How often each --data is seen, relative to the others; by default in "
            "proportion to its sentences.",
            show_default=False,
        ),
    ] = None
    data_temperature: Annotated[
        float | None,
        typer.Option(
            help="Instead of weights: sentences to the power of 1/temperature, which "
            "shows small corpora more often.",
            min=1,
            show_default=False,
        ),
    ] = None
    source_tag: Annotated[
        list[str] | None,
        typer.Option(
            help="Word in front of the sources of each --data, such as '<2de>'; '' for "
            "none. It is one piece of the vocabulary.",
            show_default=False,
        ),
    ] = None
    alignments: Annotated[
        list[str] | None,
        typer.Option(
            help="File with the links between the words of each training pair of "
            "--data, such as `0-0 1-2`, which attention to the source is trained to "
            "follow; '' for none.",
            show_default=False,
        ),
    ] = None

    def check(self) -> None:
        """Raises before any work if the options do not go together.

        Raises:
            ValueError: not as many of one as of another, or one without a use.
        """
        count = len(self.data)
        if count == 1 and (self.data_weight or self.data_temperature):
            raise ValueError(
                "--data-weight and --data-temperature need several --data. "
                f"Received: {self.data[0]} alone"
            )
        given = {
            "--source": self.source,
            "--target": self.target,
            "--data-weight": self.data_weight or (),
            "--source-tag": self.source_tag or (),
            "--alignments": self.alignments or (),
        }
        for option, values in given.items():
            may_be_one = option in ("--source", "--target") and len(values) == 1
            if values and len(values) != count and not may_be_one:
                raise ValueError(
                    f"Give {option} once for each --data. "
                    f"Received: {len(values)} for {count}"
                )

    def load(self) -> Corpus:
        """The corpus, or all of them as one."""
        from keras_attnvariants.data import load_corpus
        from keras_attnvariants.data import mix_corpora

        self.check()
        count = len(self.data)
        corpora = [
            load_corpus(
                data,
                source,
                target,
                max_invalid=self.max_invalid,
                alignments=alignments or None,
                unique=self.unique,
            )
            for data, source, target, alignments in zip(
                self.data,
                _each(self.source, count),
                _each(self.target, count),
                self.alignments or [""] * count,
                strict=True,
            )
        ]
        if count == 1 and not self.source_tag:
            return corpora[0]
        return mix_corpora(
            corpora,
            self.data_weight,
            self.data_temperature or 1.0,
            self.source_tag or (),
        )

    @property
    def example(self) -> str:
        """The options of other commands for the first corpus."""
        options = (
            f"--data {self.data[0]} --source {self.source[0]} --target {self.target[0]}"
        )
        return options + self.tag

    @property
    def tag(self) -> str:
        """The option of other commands for the tag of the first corpus, if any."""
        return (
            f" --source-tag '{self.source_tag[0]}'"
            if self.source_tag and self.source_tag[0]
            else ""
        )


def _each(values: Sequence[str], count: int) -> Sequence[str]:
    return list(values) * count if len(values) == 1 else values
