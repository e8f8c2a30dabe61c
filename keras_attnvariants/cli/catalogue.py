"""Lists of presets, corpora and trained models, and options of corpora."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

import typer

from keras_attnvariants.cli.commands import argument
from keras_attnvariants.cli.commands import command
from keras_attnvariants.cli.commands import flag
from keras_attnvariants.cli.commands import option
from keras_attnvariants.cli.options import IMPORTS
from keras_attnvariants.cli.options import MODEL_HELP
from keras_attnvariants.cli.options import TINY
from keras_attnvariants.cli.options import TaskName
from keras_attnvariants.cli.options import import_modules
from keras_attnvariants.trained.names import MODELS
from keras_attnvariants.trained.names import find_model
from keras_attnvariants.trained.names import model_names
from keras_attnvariants.trained.names import read_card
from keras_attnvariants.utils.records import grouped

if TYPE_CHECKING:
    from rich.table import Table

    from keras_attnvariants.data import Corpus

DATA = (
    "A folder with train.en, train.de, validation.en, … (also .gz), a TSV file with "
    "two columns, a name that `kav corpora` lists, or hf:NAME, a data set of the "
    "Hugging Face hub (hf:NAME:CONFIG@REVISION)."
)
FROM = "Language to translate from (not of summaries and speech)"
INTO = "Language to translate into (not of summaries and speech)"

MILLION = 1_000_000


@command
def presets(
    name: str = argument("Part of the name, such as iwslt16.", ""),
    paper: str = option(
        "Part of the paper's short name or title, such as you2020.", ""
    ),
    variant: str = option(
        "An attention class that the model contains, such as NeuralNgram, or the "
        "middle part of the name, such as hc-sa.",
        "",
    ),
    min_parameters: float | None = option(
        "At least that many million parameters.", min=0
    ),
    max_parameters: float | None = option(
        "At most that many million parameters.", min=0
    ),
    imports: list[str] | None = IMPORTS,
) -> None:
    """List the papers and their configurations: size, parameters, published figures.

    The figures are BLEU by direction; where there is none, that of the development
    set, ROUGE of summaries, or word error rates of speech. On a terminal, a long list
    is shown page by page.

    [bold]Example:[/bold] kav presets iwslt16 --paper you2020 --max-parameters 20
    """
    import_modules(imports)
    from rich.console import Console
    from rich.console import Group

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
    by_paper = grouped(found, "paper")
    papers = plain_table("paper", "presets", "title")
    for title, own in by_paper.items():
        papers.add_row(own[0].name.partition("/")[0], str(len(own)), title)
    page = Group(papers, "", found) if len(by_paper) > 1 else found
    console = Console(highlight=False)
    is_long = console.is_terminal and len(console.render_lines(page)) > console.height
    with console.pager() if is_long else nullcontext():
        console.print(page)


def plain_table(*names: str) -> Table:
    """A table without lines between columns; the first column does not wrap."""
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for number, name in enumerate(names):
        table.add_column(name, overflow="fold", no_wrap=number == 0)
    return table


@command
def corpora() -> None:
    """List the corpora that are fetched by name, with size and licence.

    They are for translation. Summaries and recordings are read from your own folders
    and archives: `kav train --task`.

    [bold]Example:[/bold] kav train --data bible-de-en --source en --target de …
    """
    from rich.console import Console

    from keras_attnvariants.data import sources
    from keras_attnvariants.utils.caches import default_cache

    table = plain_table("name", "languages", "MB", "checked by", "licence")
    for name in sources.corpus_names():
        corpus = sources.get(name)
        languages, digests = ", ".join(corpus.languages), ", ".join(corpus.digests)
        table.add_row(name, languages, f"{corpus.megabytes:,}", digests, corpus.licence)
    Console(highlight=False).print(table)
    # So that addresses and paths can be copied.
    wrapped = partial(
        textwrap.fill,
        subsequent_indent="    ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    texts = [f"  {name}: {sources.get(name).origin}" for name in sources.corpus_names()]
    kept = f"They are kept in {default_cache()} (environment: KAV_CACHE)."
    for text in ("They are fetched from:", *texts, kept):
        typer.echo(wrapped(text))


@command
def models() -> None:
    """List the trained models that can be used by name, without a network.

    BLEU is that of the test set in the card of the model. A name stands wherever a
    command takes a model.

    [bold]Example:[/bold] kav translate --model kav/hc-sa/tatoeba-en-de 'Good morning.'
    """
    from rich.console import Console

    table = plain_table("name", "languages", "params", "MB", "BLEU", "licence")
    for name in model_names():
        card = read_card(MODELS / name)
        table.add_row(
            name,
            "{source}-{target}".format(**card),
            f"{card['parameters'] / 1e6:.2f}M",
            f"{card['bytes'] / 1e6:.1f}",
            f"{card['bleu']:.1f}",
            card["license"],
        )
    Console(highlight=False).print(table)


@command
def push(
    model: str = argument(MODEL_HELP),
    address: str = argument(
        "Destination: hf://user/name, or kaggle://owner/model/keras/variation. A model "
        "that exists there gets a new version."
    ),
) -> None:
    """Upload a model folder, with its card and its page if it has them.

    The library of the hub asks for your token, or uses the one that it has stored.

    [bold]Example:[/bold] kav models push runs/packed hf://me/base-en-de
    """
    from keras_attnvariants.trained import hubs

    typer.echo(hubs.upload(find_model(model, "MODEL"), address))


@dataclass(frozen=True, kw_only=True)
class ReadingOptions:
    """The files of corpora, and options for reading them."""

    task: TaskName | None = option(
        "Task that the corpus is for; default: that of the preset or the model."
    )
    max_invalid: float = option(
        "Largest share of the lines of a file that may be invalid UTF-8.",
        0.01,
        min=0,
        max=1,
    )

    def reader(self, task: str) -> Callable[..., Corpus]:
        """A reader of corpora for a task, unless the user has named another one."""
        from keras_attnvariants.data import load_corpus

        task = self.task or task
        return partial(load_corpus, max_invalid=self.max_invalid, task=task)


@dataclass(frozen=True, kw_only=True)
class CorpusOptions(ReadingOptions):
    """A corpus."""

    data: str = option(DATA, ...)
    source: str | None = option(f"{FROM}.")
    target: str | None = option(f"{INTO}.")

    def load(self, task: str = "translation") -> Corpus:
        """The corpus.

        Args:
            task: name of the task, unless the user has given one.

        Raises:
            ValueError, OSError: there is none, or it cannot be read.
        """
        return self.reader(task)(self.data, self.source, self.target)


@dataclass(frozen=True, kw_only=True)
class CorporaOptions(ReadingOptions):
    """The corpora that a model is trained on, and how often each one is seen.

    Raises:
        ValueError: an option is not given as often as `--data`.
    """

    data: list[str] = option(f"{DATA} May be repeated.", ...)
    source: list[str] | None = option(f"{FROM}: one for all, or one for each --data.")
    target: list[str] | None = option(f"{INTO}: one for all, or one for each --data.")
    unique: bool = option(
        "Leave out training sentences that came before in the same --data, with the "
        "same target.",
        False,
    )
    data_weight: list[float] | None = option(
        "How often each --data is seen, relative to the others; by default in "
        "proportion to its sentences.",
        min=TINY,
    )
    data_temperature: float | None = option(
        "Instead of weights: sentences to the power of 1/temperature, which shows "
        "small corpora more often.",
        min=1,
    )
    source_tag: list[str] | None = option(
        "Word in front of the sources of each --data, such as '<2de>'; '' for none. It "
        "is one piece of the vocabulary."
    )
    alignments: list[str] | None = option(
        "File with the links between the words of each training pair of --data, such "
        "as `0-0 1-2`, which attention to the source is trained to follow; '' for none."
    )

    def __post_init__(self) -> None:
        count = len(self.data)
        languages = ("source", "target")
        for name in (*languages, "data_weight", "source_tag", "alignments"):
            found = len(getattr(self, name) or ())
            if found not in (0, count) and (found, name in languages) != (1, True):
                raise ValueError(
                    f"Give {flag(name)} once for each --data. "
                    f"Received: {found} for {count}"
                )

    def load(self, task: str = "translation") -> Corpus:
        """The corpus, or all of them as one; `task` as for `CorpusOptions.load`."""
        from keras_attnvariants.data import mix_corpora

        read = partial(self.reader(task), unique=self.unique)
        given: list[Any] = [self.source, self.target, self.alignments]
        # A single language is for all corpora.
        repeated = (cycle(values or [None]) for values in given)
        corpora = [
            read(data, source, target, alignments=links or None)
            for data, source, target, links in zip(self.data, *repeated, strict=False)
        ]
        if len(corpora) == 1 and not self.source_tag:
            return corpora[0]
        return mix_corpora(
            corpora,
            self.data_weight,
            self.data_temperature or 1.0,
            self.source_tag or (),
        )

    def show_next(self, run: Path, corpus: Corpus) -> None:
        """Prints the commands that score a run and use its model.

        Args:
            run: folder of the run.
            corpus: what it was trained on. The run is scored on its test set, or else
                on the validation set, if it has one of them.
        """
        from keras_attnvariants.data import tasks

        sides = {"--source": self.source, "--target": self.target}
        languages = [word for k, v in sides.items() if v for word in (k, v[0])]
        tag = self.source_tag[0] if self.source_tag else ""
        tags = ["--source-tag", tag] if tag else []
        model = ["--model", str(run)]
        command, example = tasks.get(corpus.task).use
        lines = [["kav", command, *model, *tags, example]]
        if tests := [name for name in ("test", "validation") if name in corpus.splits]:
            split = [] if tests[0] == "test" else ["--split", tests[0]]
            data = ["--data", self.data[0], *languages, *split]
            lines.insert(0, ["kav", "evaluate", *model, *data, *tags])
        typer.echo("Next: " + "\n      ".join(map(shlex.join, lines)))
