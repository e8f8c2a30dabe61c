"""The time that training waits for data: the pipeline against batches in memory."""

import os
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

# Before TensorFlow is imported: errors only.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import tensorflow as tf
import typer
from measuring import Report
from measuring import TableRow
from measuring import in_turns
from measuring import ratio

import keras_attnvariants as kav
from keras_attnvariants.data import TokenizedCorpus
from keras_attnvariants.data import load_corpus
from keras_attnvariants.training import LabelSmoothedCrossEntropy
from keras_attnvariants.training import Perplexity
from keras_attnvariants.training import TokenCount

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

MEMORY, PIPELINE = "from memory", "from the pipeline"
BAR = 1.03

TEXT = (
    "Updates of one model on the same batches, with the loss and the metrics of our "
    "training runs: once on batches made beforehand and kept in memory, and once on "
    "batches that the pipeline reads from the token files on disk during training. "
    "The ratio is that of the times, the median over rounds."
)


def trained(preset: kav.presets.Preset, policy: str, **sizes: int) -> keras.Model:
    """A model compiled as in our training runs."""
    model = preset.build(dtype=policy, dropout=0.1, **sizes)
    model.compile(
        keras.optimizers.Adam(1e-4, beta_2=0.98),
        LabelSmoothedCrossEntropy(0.1),
        weighted_metrics=[Perplexity(), TokenCount()],
        jit_compile=False,
    )
    return model


def programs(
    model: keras.Model, batches: tf.data.Dataset, updates: int
) -> dict[str, Callable[[], object]]:
    """Training on the first batches of a dataset: from memory, and from the dataset."""
    batches = batches.take(updates)
    sources = {MEMORY: batches.cache(), PIPELINE: batches}
    for _ in sources[MEMORY]:
        pass  # fills the cache

    def program(source: tf.data.Dataset) -> Callable[[], object]:
        return lambda: model.fit(source, shuffle=False, verbose=0)

    return {name: program(source) for name, source in sources.items()}


def rows_of(seconds: dict[str, list[float]], updates: int) -> list[TableRow]:
    """A row for each program, with a bar for the pipeline."""
    return [
        {
            "batches": name,
            "milliseconds per update": 1e3 * statistics.median(times) / updates,
            "ratio": ratio(times, seconds[MEMORY]),
            "bar": BAR if name == PIPELINE else None,
        }
        for name, times in seconds.items()
    ]


@app.command()
def main(
    data: Annotated[str, typer.Option(help="A corpus, as for kav train.")] = "multi30k",
    source: Annotated[str, typer.Option(help="Language to translate from.")] = "en",
    target: Annotated[str, typer.Option(help="Language to translate into.")] = "de",
    preset: Annotated[
        str, typer.Option(help="Preset of the model.")
    ] = "kav/base/multi30k",
    vocabulary_size: Annotated[
        int, typer.Option(min=1, help="Subwords of both languages together.")
    ] = 8000,
    width: Annotated[int, typer.Option(min=1, help="Width of the model.")] = 256,
    layers: Annotated[
        int, typer.Option(min=1, help="Layers of the encoder, and of the decoder.")
    ] = 3,
    batch_tokens: Annotated[
        int, typer.Option(min=1, help="Source and target positions of a batch.")
    ] = 2048,
    policy: Annotated[str, typer.Option(help="Dtype policy.")] = "mixed_bfloat16",
    updates: Annotated[int, typer.Option(min=1, help="Updates in a round.")] = 20,
    runs: Annotated[int, typer.Option(min=1, help="Timed rounds.")] = 15,
    output: Annotated[
        Path | None, typer.Option(help="File for the numbers, as JSON.")
    ] = None,
) -> None:
    """Time of updates with batches from memory and from the input pipeline.

    Feed-forward layers are four times as wide as the model, which has four heads.
    """
    corpus = load_corpus(data, source, target)
    tokenizer = kav.Tokenizer.train(corpus.files("train"), vocabulary_size)
    sizes = {
        "vocabulary_size": tokenizer.vocabulary_size,
        "num_layers": layers,
        "hidden_dim": width,
        "intermediate_dim": 4 * width,
        "num_heads": 4,
    }
    model = trained(kav.presets.get(preset), policy, **sizes)
    with tempfile.TemporaryDirectory() as folder:
        tokens = TokenizedCorpus(corpus, tokenizer, folder)
        batches = tokens.training_dataset(batch_tokens, seed=1)
        both = programs(model, batches, updates)
        in_turns(both, 1)  # compiles
        seconds = in_turns(both, runs)
    setting = (
        f"{Path(data).name}, {vocabulary_size:,} subwords, {preset} with "
        f"{layers} + {layers} layers of {width}, {policy}, "
        f"batches of {batch_tokens:,} positions, {updates} updates a round"
    )
    rows = rows_of(seconds, updates)
    title = "Training with the input pipeline"
    report = Report(title, TEXT, setting, rows, ("ratio",), at_most=True)
    report.show()
    if output is not None:
        report.write(output)


if __name__ == "__main__":
    app()
