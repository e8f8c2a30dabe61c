"""Fine-tunes a trained model on a few sentences of another domain, or after a swap.

Each call does or continues one run, and adds its figures to a JSON file, without any
sentences. `adapt` compares the model with itself after training on a few pairs (all
weights, or LoRA) and with a model of the same preset and vocabulary that learns from
these pairs alone. `swap` gives the model other attention and follows BLEU over the
updates, compared with the same model with random weights.
"""

import json
from itertools import islice
from pathlib import Path
from typing import Annotated
from typing import Any

import keras
import typer

import keras_attnvariants as kav
from keras_attnvariants.evaluation.metrics import corpus_score
from keras_attnvariants.training.progress import read_log
from keras_attnvariants.training.training_config import with_schedule
from keras_attnvariants.utils.files import replace_file

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

MODEL = "kav/base/tatoeba-en-de"
SWAPPED = "kav/hc-sa/tatoeba-en-de"
SOURCE, TARGET = "en", "de"
RATE = {"learning_rate": 1e-3, "warmup_steps": 100}

Data = Annotated[str, typer.Option(help="Corpus, as of `kav train --data`.")]
Work = Annotated[Path, typer.Option(help="Folder of all runs.")]
Output = Annotated[Path, typer.Option(help="JSON file that the figures go into.")]
Updates = Annotated[int, typer.Option(help="Updates of the run; more go on with it.")]


@app.command()
def adapt(
    data: Data,
    system: Annotated[str, typer.Argument(help="before, tuned, lora or nothing.")],
    work: Work = Path("runs/fine_tuning"),
    output: Output = Path("benchmarks/results/fine_tuning.json"),
    seed: int = 1,
    pairs: int = 2000,
    updates: Updates = 300,
    rank: int = 4,
    test: str = "test2016",
) -> None:
    """Train on the first pairs of a corpus, and score the better model."""
    corpus = first_pairs(data, work / f"first-{pairs}", pairs, test)
    model, tokenizer = kav.load_model(MODEL)
    figures: dict[str, Any] = {"system": system, "seed": seed}
    if system != "before":
        run = work / f"{system}-{seed}"
        start = start_of(system, tokenizer, rank)
        train(MODEL, corpus, run, start, updates, seed, validate_every=25)
        model, tokenizer = kav.training.load_run(run)
        events = read_log(run / "log.jsonl")
        figures["updates"] = updates
        figures["validation_loss"] = losses_of(events)
    if system == "lora":
        figures |= sizes_of_lora(rank) | adapter_of(run, model)
    sources, references = corpus.read_lines(test)
    translate = kav.Translator(model, tokenizer, xla=False).translate
    figures["bleu"] = corpus_score("bleu", translate(sources), references).value
    add(output, f"adapt/{system}/{seed}", figures)


@app.command()
def swap(
    data: Data,
    system: Annotated[str, typer.Argument(help="base, swapped or nothing.")],
    work: Work = Path("runs/fine_tuning"),
    output: Output = Path("benchmarks/results/fine_tuning.json"),
    seed: int = 1,
    updates: Updates = 250,
    sentences: int = 500,
) -> None:
    """Give the model hard-coded attention, and go on with the corpus that it knows."""
    corpus = kav.data.load_corpus(data, SOURCE, TARGET)
    model, tokenizer = kav.load_model(MODEL)
    figures: dict[str, Any] = {"system": system, "seed": seed}
    if system != "base":
        run = work / f"swap-{system}-{seed}"
        start = start_of(system, tokenizer)
        options = {"validate_every": 250, "score_sentences": sentences}
        train(SWAPPED, corpus, run, start, updates, seed, **options)
        events = read_log(run / "log.jsonl")
        scores = {e["step"]: e["val_bleu"] for e in events if e["event"] == "period"}
        figures["bleu_by_updates"] = scores
        preset = kav.presets.get(SWAPPED)
        model = preset.build(tokenizer.vocabulary_size)
        if "fine_tuning" in start:
            start["fine_tuning"].start(model)
    # Without training, random weights translate nothing and take the longest.
    if system != "nothing":
        pairs = zip(*corpus.read_lines("validation"), strict=True)
        sources, references = zip(*islice(pairs, sentences), strict=True)
        translate = kav.Translator(model, tokenizer, beam_size=1, xla=False).translate
        bleu = corpus_score("bleu", translate(sources), references)
        figures["bleu_before"] = bleu.value
    add(output, f"swap/{system}/{seed}", figures)


def start_of(system: str, tokenizer: kav.Tokenizer, rank: int = 0) -> dict[str, Any]:
    """Arguments of `train_preset` about the start of a run."""
    if system == "nothing":
        return {"tokenizer": tokenizer}
    settings = {"lora_rank": rank} if system == "lora" else {}
    return {"fine_tuning": kav.training.FineTuning(model=MODEL, **settings)}


def train(
    name: str,
    corpus: kav.data.Corpus,
    run: Path,
    start: dict[str, Any],
    updates: int,
    seed: int,
    validate_every: int,
    score_sentences: int = 0,
) -> None:
    """Train a preset, or continue its training."""
    settings = {"steps": updates, "validate_every": validate_every, "save_every": 50}
    kav.training.train_preset(
        kav.presets.get(name),
        corpus,
        run,
        **start,
        batch_tokens=2048,
        settings=with_schedule({**RATE, **settings}),
        seed=seed,
        score_sentences=score_sentences,
        samples=0,
    )


def first_pairs(data: str, folder: Path, pairs: int, test: str) -> kav.data.Corpus:
    """A corpus reduced to its first training pairs."""
    whole = kav.data.load_corpus(data, SOURCE, TARGET)
    folder.mkdir(parents=True, exist_ok=True)
    for split in ("train", "validation", test):
        count = pairs if split == "train" else None
        for path, language in zip(whole.files(split), (SOURCE, TARGET), strict=True):
            with path.open("rb") as file:
                lines = b"".join(islice(file, count))
            replace_file(folder / f"{split}.{language}", lines)
    return kav.data.load_corpus(folder, SOURCE, TARGET)


def losses_of(events: list[dict[str, Any]]) -> dict[int, float]:
    """Validation losses by update."""
    return {
        e["step"]: round(e["val_loss"], 4) for e in events if e["event"] == "period"
    }


def sizes_of_lora(rank: int) -> dict[str, int]:
    """Number of weights of the model, and of those that are trained with LoRA."""
    model = kav.load_model(MODEL).model
    whole = model.count_params()
    kav.training.fine_tuning.add_lora(model, rank)
    trained = sum(keras.ops.size(weight) for weight in model.trainable_variables)
    return {"rank": rank, "weights": whole, "trained_weights": int(trained)}


def adapter_of(run: Path, merged: keras.Model) -> dict[str, float]:
    """Bytes of the adapter of a run, and its differences from the merged model."""
    adapted = kav.load_model(run / "adapter").model
    ids = keras.random.randint((8, 20), 4, 4000, seed=1)
    inputs = {"source_ids": ids, "target_ids": ids}
    logits = [
        kav.models.templates.with_policy(model, "float32")(inputs)
        for model in (merged, adapted)
    ]
    one, other = map(keras.ops.softmax, logits)
    files = (run / "adapter").iterdir()
    return {
        "adapter_bytes": sum(file.stat().st_size for file in files),
        "largest_logit": float(keras.ops.max(abs(logits[0]))),
        "difference_of_logits": float(keras.ops.max(abs(logits[0] - logits[1]))),
        "difference_of_probabilities": float(keras.ops.max(abs(one - other))),
    }


def add(output: Path, name: str, figures: dict[str, Any]) -> None:
    """Add the figures of a run to the file of all."""
    output.parent.mkdir(parents=True, exist_ok=True)
    found = json.loads(output.read_text()) if output.is_file() else {}
    found[name] = figures
    replace_file(output, f"{json.dumps(found, indent=1, sort_keys=True)}\n".encode())
    print(json.dumps(figures))


if __name__ == "__main__":
    app()
