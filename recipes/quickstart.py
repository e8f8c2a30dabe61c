"""Train, score, export and use a small English-German model in one go.

What `kav train`, `kav evaluate`, `kav export` and `kav translate` do one by one.
"""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import track

import keras_attnvariants as kav
from keras_attnvariants.cli.commands import clear_errors
from keras_attnvariants.utils.importing import import_tensorflow

CORPUS, SOURCE, TARGET = "bible-de-en", "en", "de"
# Hard-coded Gaussian self-attention, learned cross-attention (You et al. 2020).
PRESET = "kav/hc-sa/bible"
VALIDATE_EVERY = 250
BEAM_SIZE = 4
CHUNK = 128
SHOWN = 5

NEXT = """[bold]Next[/bold]
Your own sentences:  kav translate --saved-model {output} 'In the garden.'
Another variant:     kav presets; kav train --preset kav/base/bible …
Your own corpus:     kav train --data FOLDER with train.en, train.de, validation.en, …
TensorFlow Serving:  point it at {output}
Log of the training: {run}/log.jsonl"""

console = Console(highlight=False)


def main(
    minutes: Annotated[
        float, typer.Option(help="Limit of training; the rest takes about four.")
    ] = 14.0,
    sentences: Annotated[
        int | None,
        typer.Option(help="Score only the first sentences of the test set.", min=1),
    ] = None,
    run: Annotated[Path, typer.Option(help="Folder of the run.")] = Path(
        "runs/quickstart"
    ),
    output: Annotated[Path, typer.Option(help="Folder of the SavedModel.")] = Path(
        "saved_models/quickstart"
    ),
) -> None:
    """Train, score, export and use a small English-German model in one go.

    Fetches 31,000 Bible verses in public domain translations (73 MB), and trains a
    Transformer on them whose self-attention is hard-coded. Takes at most 20 minutes
    on two processor cores. After an interruption, the same command continues.
    """
    with clear_errors():
        import_tensorflow()
        say(1, f"Corpus {CORPUS}, {SOURCE} to {TARGET}, whole chapters held out")
        corpus = kav.data.load_corpus(CORPUS, SOURCE, TARGET)
        console.print(corpus.report)

        say(2, f"Training {PRESET} for at most {minutes:g} minutes in {run}")
        train(corpus, run, minutes)
        model, tokenizer = kav.training.load_run(run)

        say(3, "Scoring the held-out test chapters with sacreBLEU")
        sources, references = corpus.read_lines("test")
        score(model, tokenizer, sources[:sentences], references[:sentences])

        say(4, f"Exporting a SavedModel, from text to text, to {output}")
        path = kav.serving.export(model, tokenizer, output, beam_size=BEAM_SIZE)

        say(5, f"Verses of held-out chapters through {path}")
        places = [len(sources) * place // SHOWN for place in range(SHOWN)]
        served = kav.serving.SavedTranslator(path)
        found = served.translate([sources[place] for place in places])
        for place, translation in zip(places, found, strict=True):
            console.print(f"source       {sources[place]}", style="dim")
            console.print(f"translation  {translation}")
            console.print(f"reference    {references[place]}\n", style="dim")
        console.print(NEXT.format(run=run, output=output), soft_wrap=True)


def train(corpus: kav.data.Corpus, run: Path, minutes: float) -> None:
    """Trains until the time is up."""
    kav.training.train_preset(
        kav.presets.get(PRESET),
        corpus,
        run,
        settings={"validate_every": VALIDATE_EVERY},
        callbacks=[kav.training.TimeLimit(minutes)],
    )


def score(model, tokenizer, sources: list[str], references: list[str]) -> None:
    """Translates a test set and prints its BLEU."""
    # Without XLA: compiling every shape takes longer than a test set.
    translator = kav.Translator(model, tokenizer, beam_size=BEAM_SIZE, xla=False)
    chunks = [sources[i : i + CHUNK] for i in range(0, len(sources), CHUNK)]
    bar = track(chunks, "Translating", transient=True, console=Console(stderr=True))
    translations = [text for chunk in bar for text in translator.translate(chunk)]
    console.print(str(kav.evaluation.corpus_bleu(translations, references)))


def say(number: int, what: str) -> None:
    """Prints what comes next."""
    console.print(f"\n[bold]{number}  {what}[/bold]")


if __name__ == "__main__":
    typer.run(main)
