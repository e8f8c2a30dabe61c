"""`kav presets` and `kav corpora`, and the options of commands that read corpora."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from typing import Annotated

import typer

from keras_attnvariants.cli.commands import command
from keras_attnvariants.cli.options import Imports
from keras_attnvariants.cli.options import checked
from keras_attnvariants.cli.options import import_modules
from keras_attnvariants.utils.checks import check_positive

if TYPE_CHECKING:
    from keras_attnvariants.data import Corpus

DATA = (
    "A folder with train.en, train.de, validation.en, … (also .gz), a TSV file with "
    "two columns, or a name that `kav corpora` lists."
)
FROM, INTO = "Language to translate from", "Language to translate into"
MaxInvalid = Annotated[
    float,
    typer.Option(
        help="Largest share of the lines of a file that may be invalid UTF-8.",
        min=0,
        max=1,
    ),
]

MILLION = 1_000_000
POSITIVE = checked(check_positive)


@command
def presets(
    name: Annotated[
        str,
        typer.Argument(help="Part of the name, such as iwslt16."),
    ] = "",
    paper: Annotated[
        str,
        typer.Option(help="Part of the paper's short name or title, such as you2020."),
    ] = "",
    variant: Annotated[
        str,
        typer.Option(
            help="An attention class that the model contains, such as NeuralNgram, or "
            "the middle part of the name, such as hc-sa."
        ),
    ] = "",
    min_parameters: Annotated[
        float | None,
        typer.Option(help="At least that many million parameters.", callback=POSITIVE),
    ] = None,
    max_parameters: Annotated[
        float | None,
        typer.Option(help="At most that many million parameters.", callback=POSITIVE),
    ] = None,
    imports: Imports = None,
) -> None:
    """List the published configurations: size, parameters, published figures.

    The figures are BLEU by direction; where there is none, that of the development
    set, or ROUGE.

    [bold]Example:[/bold] kav presets iwslt16 --paper you2020 --max-parameters 20
    """
    import_modules(imports)
    from rich.console import Console

    import keras_attnvariants as kav

    found = kav.presets.list(
        name,
        paper=paper,
        variant=variant,
        min_parameters=min_parameters and round(min_parameters * MILLION),
        max_parameters=max_parameters and round(max_parameters * MILLION),
    )
    if not found:
        raise ValueError("No preset fits. `kav presets` without options lists all.")
    Console(highlight=False).print(found)


@command
def corpora() -> None:
    """List the corpora that are fetched by name, with size and licence.

    [bold]Example:[/bold] kav train --data bible-de-en --source en --target de …
    """
    from rich.console import Console
    from rich.table import Table

    from keras_attnvariants.data import registry
    from keras_attnvariants.utils.caches import default_cache

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for column in ("name", "languages", "MB", "checked by", "licence", "from"):
        table.add_column(column, overflow="fold")
    for name in registry.names():
        corpus = registry.get(name)
        languages = ", ".join(corpus.languages)
        size = f"{corpus.megabytes:,}"
        digests = ", ".join(corpus.digests)
        table.add_row(name, languages, size, digests, corpus.licence, corpus.origin)
    Console(highlight=False).print(table)
    typer.echo(f"They are kept in {default_cache()} (environment: KAV_CACHE).")


@dataclass(frozen=True, kw_only=True)
class CorpusOptions:
    """Which corpus, and what it is read as."""

    data: Annotated[str, typer.Option(help=DATA)]
    source: Annotated[str, typer.Option(help=f"{FROM}.")]
    target: Annotated[str, typer.Option(help=f"{INTO}.")]
    max_invalid: MaxInvalid = 0.01

    def load(self) -> Corpus:
        """The corpus.

        Raises:
            ValueError, OSError: there is none, or it cannot be read.
        """
        from keras_attnvariants.data import load_corpus

        return load_corpus(
            self.data, self.source, self.target, max_invalid=self.max_invalid
        )


@dataclass(frozen=True, kw_only=True)
class CorporaOptions:
    """Which corpora a model is trained on, and how often each of them is seen.

    Raises:
        ValueError: not as many of one option as of another, or one without a use.
    """

    data: Annotated[list[str], typer.Option(help=f"{DATA} May be repeated.")]
    source: Annotated[
        list[str], typer.Option(help=f"{FROM}: one for all, or one for each --data.")
    ]
    target: Annotated[
        list[str], typer.Option(help=f"{INTO}: one for all, or one for each --data.")
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
            "proportion to its sentences."
        ),
    ] = None
    data_temperature: Annotated[
        float | None,
        typer.Option(
            help="Instead of weights: sentences to the power of 1/temperature, which "
            "shows small corpora more often.",
            min=1,
        ),
    ] = None
    source_tag: Annotated[
        list[str] | None,
        typer.Option(
            help="Word in front of the sources of each --data, such as '<2de>'; '' for "
            "none. It is one piece of the vocabulary."
        ),
    ] = None
    alignments: Annotated[
        list[str] | None,
        typer.Option(
            help="File with the links between the words of each training pair of "
            "--data, such as `0-0 1-2`, which attention to the source is trained to "
            "follow; '' for none."
        ),
    ] = None

    def __post_init__(self) -> None:
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

    def example(self) -> list[str]:
        """The options of other commands for the first corpus."""
        languages = ["--source", self.source[0], "--target", self.target[0]]
        return ["--data", self.data[0], *languages, *self.tag()]

    def tag(self) -> list[str]:
        """The option of other commands for the tag of the first corpus, if any."""
        tag = self.source_tag[0] if self.source_tag else ""
        return ["--source-tag", tag] if tag else []


def _each(values: Sequence[str], count: int) -> Sequence[str]:
    return list(values) * count if len(values) == 1 else values
