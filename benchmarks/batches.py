"""The share of padding in batches, and the number of programs for their shapes."""

import os
import tempfile
from pathlib import Path
from typing import Annotated

# Before TensorFlow is imported: errors only.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import typer
from measuring import Report
from measuring import TableRow

from keras_attnvariants.data import Corpus
from keras_attnvariants.data import TokenizedCorpus
from keras_attnvariants.data import Tokenizer
from keras_attnvariants.data import load_corpus
from keras_attnvariants.training.training_config import BATCHES_PER_PROGRAM

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

BAR = 0.1

TEXT = (
    "The share of an epoch's source and target positions, together, that hold no "
    "token. XLA compiles one program for each shape that occurs. The pipeline "
    "chooses its shapes before training begins and keeps them in every epoch; a small "
    "corpus has fewer of them where XLA compiles the updates. "
    "Random batches are padded to the longest source and target in each."
)


def row(corpus: str, batches: str, positions: list[tuple], tokens: int) -> TableRow:
    """The row of one way to make batches, with a bar for the pipeline.

    Args:
        corpus: name of the corpus.
        batches: name of the way.
        positions: rows, source and target positions of every batch.
        tokens: number of real tokens, source and target together.
    """
    whole = sum(rows * (source + target) for rows, source, target in positions)
    return {
        "corpus": corpus,
        "batches": batches,
        "number": len(positions),
        "shapes": len(set(positions)),
        "padding": 1 - tokens / whole,
    }


def from_pipeline(tokens: TokenizedCorpus, batch_tokens: int, seed: int):
    """Shapes and real tokens of the batches of one epoch, as training reads them."""
    count = tokens.num_batches(batch_tokens)
    positions, real = [], 0
    for inputs, labels, weights in tokens.training_dataset(batch_tokens, seed).take(
        count
    ):
        positions.append((*inputs["source_ids"].shape, labels.shape[1]))
        real += np.count_nonzero(inputs["source_ids"]) + int(np.sum(weights))
    return positions, real


def at_random(tokens: TokenizedCorpus, rows: int, seed: int):
    """Shapes and real tokens of batches of `rows` random pairs; the last has fewer."""
    source, target = (side.lengths for side in tokens.split("train"))
    lengths = np.stack([source, target + 1], 1)  # BOS or EOS
    lengths = lengths[(source > 0) & (target > 0)]
    lengths = lengths[(lengths <= tokens.max_length).all(1)]
    np.random.default_rng(seed).shuffle(lengths)
    groups = [lengths[i : i + rows] for i in range(0, len(lengths), rows)]
    positions = [(len(group), *map(int, group.max(0))) for group in groups]
    return positions, int(lengths.sum())


def rows_of(
    corpus: Corpus,
    name: str,
    vocabulary_size: int,
    batch_tokens: int,
    random_rows: int,
    seed: int,
) -> list[TableRow]:
    """The rows of both ways to make batches of a corpus."""
    tokenizer = Tokenizer.train(corpus.files("train"), vocabulary_size)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for label, least, bar in (
            ("pipeline", 0, BAR),
            ("pipeline, with XLA", BATCHES_PER_PROGRAM, None),
        ):
            tokens = TokenizedCorpus(
                corpus, tokenizer, folder=folder, batches_per_shape=least
            )
            bound = len(tokens.plan("train", batch_tokens, seed).shapes)
            found = row(name, label, *from_pipeline(tokens, batch_tokens, seed))
            rows.append(found | {"shapes at most": bound, "bar": bar})
        random = at_random(tokens, random_rows, seed)
    other = row(name, f"random {random_rows}", *random)
    return [*rows, other | {"shapes at most": None, "bar": None}]


@app.command()
def main(
    data: Annotated[
        list[str],
        typer.Option(help="A corpus, as for kav train; may be given twice."),
    ],
    source: Annotated[str, typer.Option(help="Language to translate from.")] = "en",
    target: Annotated[str, typer.Option(help="Language to translate into.")] = "de",
    vocabulary_size: Annotated[
        int, typer.Option(min=1, help="Subwords of both languages together.")
    ] = 8000,
    batch_tokens: Annotated[
        int, typer.Option(min=1, help="Source and target positions of a batch.")
    ] = 2048,
    random_rows: Annotated[
        int, typer.Option(min=1, help="Pairs of a random batch.")
    ] = 128,
    seed: Annotated[int, typer.Option(help="Decides the order of the batches.")] = 1,
    output: Annotated[
        Path | None, typer.Option(help="File for the numbers, as JSON.")
    ] = None,
) -> None:
    """Padding and shapes of one epoch, made by the pipeline and made at random."""
    rows = []
    for spec in data:
        corpus = load_corpus(spec, source, target)
        rows += rows_of(
            corpus, Path(spec).name, vocabulary_size, batch_tokens, random_rows, seed
        )
    setting = f"{vocabulary_size:,} subwords, batches of {batch_tokens:,} positions"
    report = Report(
        "Padding of batches", TEXT, setting, rows, ("padding",), at_most=True
    )
    report.show()
    if output is not None:
        report.write(output)


if __name__ == "__main__":
    app()
