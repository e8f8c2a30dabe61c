"""`kav shortlist`: the tokens that translations may have, learned from a corpus."""

import shlex
from collections.abc import Iterable
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated
from typing import Any

import typer

from keras_attnvariants.cli.catalogue import CorpusOptions
from keras_attnvariants.cli.commands import command
from keras_attnvariants.cli.models import check_folders
from keras_attnvariants.cli.models import load
from keras_attnvariants.cli.options import Imports
from keras_attnvariants.cli.options import RequiredModel
from keras_attnvariants.cli.options import check_output_file
from keras_attnvariants.cli.options import import_modules

Output = Annotated[
    Path,
    typer.Option(help="File to write, such as shortlist.npz."),
]
Candidates = Annotated[
    int, typer.Option(help="Likely translations of each token, at most.", min=1)
]
Common = Annotated[
    int,
    typer.Option(help="Frequent tokens that every translation may have.", min=0),
]


@dataclass(frozen=True)
class Pairs:
    """The lines of two texts side by side, as often as they are asked for."""

    source: Iterable[Any]
    target: Iterable[Any]

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        return zip(self.source, self.target, strict=True)


@command
def shortlist(
    *,
    model: RequiredModel,
    corpus: CorpusOptions,
    output: Output,
    candidates: Candidates = 50,
    common: Common = 200,
    imports: Imports = None,
) -> None:
    """Learn which tokens translations may have, by those of their sources.

    A lexical model is estimated from the training sentences of a corpus, in the tokens
    of a trained model. `kav export --shortlist` makes the exported model faster by it.

    [bold]Example:[/bold] kav shortlist --model runs/multi30k
    --data multi30k --source en --target de --output shortlist.npz
    """
    check_folders(model, None)
    check_output_file(output)
    texts = corpus.load()
    import_modules(imports)
    from keras_attnvariants.data import Shortlist
    from keras_attnvariants.data import TokenizedCorpus

    loaded, tokenizer = load(model)
    learned = Shortlist.learn(
        Pairs(*TokenizedCorpus(texts, tokenizer).split("train")),
        loaded.source_vocabulary_size,
        loaded.vocabulary_size,
        candidates,
        common,
    )
    learned.save(output)
    found = (learned.by_source >= 0).any(axis=1).sum()
    typer.echo(
        f"{output}: {len(learned.common):,} tokens for all translations, and up to "
        f"{candidates} for each of {found:,} source tokens"
    )
    to = ["--output", "saved_models/NAME", "--shortlist", str(output)]
    typer.echo("Next: " + shlex.join(["kav", "export", "--model", str(model), *to]))
