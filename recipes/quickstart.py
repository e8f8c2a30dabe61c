"""Train, score, export and use a small English-German model in one go."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from shared import clear_errors
from shared import load_model
from shared import new_app
from shared import translate_all

import keras_attnvariants as kav

CORPUS, SOURCE, TARGET = "bible-de-en", "en", "de"
# Hard-coded Gaussian self-attention, learned cross-attention (You et al. 2020).
PRESET = "kav/hc-sa/bible"
VALIDATE_EVERY = 250
BEAM_SIZE = 4
SHOWN = 5

NEXT = """[bold]Next[/bold]
Your own sentences:  python recipes/translate.py --saved-model {output} 'In the garden.'
Another variant:     python recipes/train.py --help   (--preset kav/base/bible, …)
Your own corpus:     --data FOLDER with train.en, train.de, validation.en, …
TensorFlow Serving:  point it at {output}
Log of the training: {run}/log.jsonl"""

app = new_app()
console = Console(highlight=False)


@app.command()
def main(
    minutes: Annotated[
        float, typer.Option(help="Of training at most; the rest takes about four.")
    ] = 14.0,
    run: Annotated[Path, typer.Option(help="Folder of the run.")] = Path(
        "runs/quickstart"
    ),
    output: Annotated[Path, typer.Option(help="Folder of the SavedModel.")] = Path(
        "saved_models/quickstart"
    ),
) -> None:
    """Train, score, export and use a small English-German model in one go.

    Fetches 31,000 Bible verses in public domain translations (73 MB), and trains a
    Transformer on them whose self-attention is hard-coded. Takes at most 20 minutes on
    two processor cores. After an interruption, the same command goes on.
    """
    with clear_errors():
        say(1, f"Corpus {CORPUS}, {SOURCE} to {TARGET}, whole chapters held out")
        corpus = kav.data.load_corpus(CORPUS, SOURCE, TARGET)
        console.print(corpus.report)
        say(2, f"Training {PRESET} for at most {minutes:g} minutes in {run}")
        train(corpus, run, minutes)
        model, tokenizer = load_model(run)
        say(3, "Scoring the held-out test chapters with sacreBLEU")
        sources, references = corpus.read_lines("test")
        translator = kav.Translator(model, tokenizer, beam_size=BEAM_SIZE, xla=False)
        translations = translate_all(translator.translate, sources, "Translating")
        console.print(str(kav.evaluation.corpus_bleu(translations, references)))
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


def train(corpus: "kav.data.Corpus", run: Path, minutes: float) -> None:
    """Trains with a progress bar."""
    from bar import TimeLimitBar
    from runs import train_run

    preset = kav.presets.get(PRESET)
    with TimeLimitBar(minutes, preset.training.steps) as limit:
        train_run(
            preset,
            corpus,
            run,
            sizes={},
            settings={"validate_every": VALIDATE_EVERY},
            limit=limit,
            verbose=0,
        )


def say(number: int, what: str) -> None:
    """Prints what comes next."""
    console.print(f"\n[bold]{number}  {what}[/bold]")


if __name__ == "__main__":
    app()
