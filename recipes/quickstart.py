"""Translate at once; then train, score, export and use a small English-German model.

Combines `kav translate`, `kav train`, `kav evaluate` and `kav export`.
"""

import time
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

import keras_attnvariants as kav
from keras_attnvariants.cli.commands import clear_errors
from keras_attnvariants.utils.importing import import_tensorflow
from keras_attnvariants.utils.importing import train_on_parts

train_on_parts()
import_tensorflow()  # without its start-up messages

import keras  # noqa: E402

# A trained model of the package, for everyday sentences.
READY = "kav/hc-sa/tatoeba-en-de"
SENTENCE = "I have never seen such a beautiful garden."

CORPUS, SOURCE, TARGET = "bible-de-en", "en", "de"
# Hard-coded Gaussian self-attention, learned cross-attention (You et al. 2020).
PRESET = "kav/hc-sa/bible"
# The width of the package's model. With the preset's 256, an update takes 1.5 times as
# long, and the updates that fit into the time do not give a better model.
WIDTH = 192
# The learning rate decays until the time is up, or all updates are done.
STEPS, PEAK, WARMUP_STEPS = 9000, 2e-3, 300
VALIDATE_EVERY = 500
# Measured BLEU on the test set, by number of updates.
MEASURED = {250: 1.0, 1500: 20.0, 3600: 28.0, 9000: 31.0}
# Seconds of training after which its pace is known, and the share of the time that
# updates get beside validations.
WATCHED, BUSY = 45.0, 0.95
BEAM_SIZE, BATCH = 4, 32
CHUNK = 128
# Both models are scored on one in this many verses.
EVERY = 10
SHOWN = 5
# Sentences whose words both models know.
SIMPLE = (
    "Where is your brother?",
    "I am not afraid.",
    "Give me some water.",
    "He went into the house and sat down.",
)

NEXT = """[bold]Next[/bold]
Your own sentences:  kav translate --saved-model {output} 'In the garden.'
A trained model:     kav translate --model {ready} 'In the garden.'; kav models
Another variant:     kav presets; kav train --preset kav/base/bible …
Your own corpus:     kav train --data FOLDER with train.en, train.de, validation.en, …
TensorFlow Serving:  point it at {output}
Log of the training: {run}/log.jsonl"""

PAGE = '<!doctype html><html lang="en"><meta charset="utf-8">{}</html>\n'

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
    """Translate at once; then train, score, export and use a small model.

    Begins with a trained model from the package. Then fetches 31,000 Bible verses in
    public domain translations (73 MB), and trains a Transformer on them whose
    self-attention is hard-coded. Takes at most 20 minutes: after the first minute of
    training, it predicts how many updates fit into the time, and how good the model
    should become. After an interruption, the same command continues.
    """
    with clear_errors():
        say(1, f"Translating with a trained model of the package, {READY}")
        ready = kav.load_model(READY)
        show_attention(ready, run.with_suffix(".html"))

        say(2, f"Corpus {CORPUS}, {SOURCE} to {TARGET}, whole chapters held out")
        corpus = kav.data.load_corpus(CORPUS, SOURCE, TARGET)
        console.print(corpus.report)

        say(3, f"Training {PRESET} for at most {minutes:g} minutes in {run}")
        forecast = train(corpus, run, minutes)

        say(4, "Scoring the held-out test chapters with sacreBLEU")
        sources, references = (side[:sentences] for side in corpus.read_lines("test"))
        own = kav.training.load_run(run)
        found = translate(own, [*sources, *SIMPLE])
        score = kav.evaluation.corpus_score("bleu", found[: len(sources)], references)
        console.print(str(score))
        console.print(forecast.compared(score.value))

        say(5, f"Your model beside {READY}")
        compare(ready, sources, references, found)

        say(6, f"Exporting a SavedModel, from text to text, to {output}")
        path = kav.serving.export(*own, output, beam_size=BEAM_SIZE)

        say(7, f"Verses of held-out chapters through {path}")
        places = [len(sources) * place // SHOWN for place in range(SHOWN)]
        served = kav.serving.SavedTranslator(path)
        found = served.translate([sources[place] for place in places])
        for place, translation in zip(places, found, strict=True):
            console.print(f"source       {sources[place]}", style="dim")
            console.print(f"translation  {translation}")
            console.print(f"reference    {references[place]}\n", style="dim")
        console.print(NEXT.format(run=run, output=output, ready=READY), soft_wrap=True)


def show_attention(ready: kav.data.LoadedModel, page: Path) -> None:
    """Translates a sentence, and writes a page of what its words attend to."""
    found = kav.evaluation.AlignedTranslator(*ready).translate(SENTENCE)
    console.print(f"source       {SENTENCE}", style="dim")
    console.print(f"translation  {found.hypotheses[0].text}")
    console.print(f"attention    {'; '.join(found.descriptions)}", style="dim")
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(PAGE.format(found._repr_html_()), encoding="utf-8")
    console.print(f"page         {page}, to be opened in a browser")


def train(corpus: kav.data.Corpus, run: Path, minutes: float) -> "Forecast":
    """Trains until the time is up, and prints what it cost."""
    limit = kav.training.TimedDecay(minutes, STEPS, PEAK, WARMUP_STEPS)
    forecast, began = Forecast(limit), time.process_time()
    result = kav.training.train_preset(
        kav.presets.get(PRESET),
        corpus,
        run,
        sizes={"hidden_dim": WIDTH},
        settings={
            "steps": STEPS,
            "learning_rate": PEAK,
            "validate_every": VALIDATE_EVERY,
        },
        callbacks=[limit, forecast],
    )
    forecast.done = result.step
    console.print(
        f"Cost: {result.step:,} updates in {limit.seconds / 60:.1f} minutes, "
        f"{(time.process_time() - began) / 60:.1f} minutes of one processor core."
    )
    return forecast


class Forecast(keras.callbacks.Callback):
    """Predicts the BLEU of a model, once the pace of its training is known.

    Args:
        limit: the time limit of the training.

    Attributes:
        updates: number of updates that should fit into the time; `None` if unknown.
        done: number of updates done.
    """

    def __init__(self, limit: kav.training.TimeLimit) -> None:
        super().__init__()
        self.limit = limit
        self.updates: float | None = None
        self.done = 0
        self._first: tuple[int, float] | None = None

    def on_train_batch_end(self, batch: int, logs: object = None) -> None:
        done, now = int(self.model.optimizer.iterations), self.limit.seconds
        # The first update compiles.
        first, then = self._first = self._first or (done, now)
        if self.updates is not None or now - then < WATCHED:
            return
        pace = (done - first) / (now - then)
        self.updates = min(done + pace * BUSY * (self.limit.limit - now), STEPS)
        console.print(
            f"{pace:.1f} updates a second: about {self.updates:,.0f} fit into the time "
            f"and should give about {expected(self.updates):.0f} BLEU."
        )

    def compared(self, score: float) -> str:
        """The BLEU of the model beside the forecast."""
        updates = self.updates or self.done
        return (
            f"{self.done:,} updates gave {score:.1f} BLEU, where {updates:,.0f} should "
            f"give about {expected(updates):.0f}."
        )


def expected(updates: float) -> float:
    """The BLEU expected after a number of updates."""
    return float(
        np.interp(np.log(max(updates, 1)), np.log([*MEASURED]), [*MEASURED.values()])
    )


def translate(model: kav.data.LoadedModel, sources: list[str]) -> list[str]:
    """Translations, with a progress bar."""
    # Each batch size is another program: one size without XLA compiles fastest.
    translator = kav.Translator(
        *model, beam_size=BEAM_SIZE, batch_sizes=[BATCH], xla=False
    )
    chunks = [sources[i : i + CHUNK] for i in range(0, len(sources), CHUNK)]
    bar = track(chunks, "Translating", transient=True, console=Console(stderr=True))
    return [text for chunk in bar for text in translator.translate(chunk)]


def compare(
    ready: kav.data.LoadedModel,
    sources: list[str],
    references: list[str],
    found: list[str],
) -> None:
    """Compares the translations of your model with those of the package's model.

    Args:
        ready: the model of the package.
        sources, references: verses.
        found: your model's translations of the verses and of the simple sentences.
    """
    some = slice(0, len(sources), EVERY)
    others = translate(ready, [*sources[some], *SIMPLE])
    table = Table("source", "yours", "of the package", box=None, pad_edge=False)
    simple = found[-len(SIMPLE) :], others[-len(SIMPLE) :]
    for row in zip(SIMPLE, *simple, strict=True):
        table.add_row(*row)
    console.print(table)
    yours, other = (
        kav.evaluation.corpus_score("bleu", texts, references[some]).value
        for texts in (found[some], others[: -len(SIMPLE)])
    )
    console.print(
        f"BLEU on {len(references[some])} of the verses: yours {yours:.1f}, that of "
        f"the package {other:.1f}. It learned from everyday sentences and has seen no "
        "verse; yours has seen nothing else. A model is best on texts like its corpus."
    )


def say(number: int, what: str) -> None:
    """Prints the heading of a step."""
    console.print(f"\n[bold]{number}  {what}[/bold]")


if __name__ == "__main__":
    typer.run(main)
