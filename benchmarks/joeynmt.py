"""The progress of training after equal CPU time, compared with JoeyNMT.

Both train the same Transformer on the same sentences with the same vocabulary, each in
its own process on one thread. The CPU time of a process counts from its start,
including imports, reading the data and compiling. The vocabulary is learned beforehand,
and the time of scoring is not counted.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer
from measuring import Report
from measuring import TableRow
from peers import environments

import keras_attnvariants as kav

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

FOLDER = Path(__file__).resolve().parent
OURS, JOEY = "ours", "JoeyNMT 2.3"
SCRIPTS = {OURS: "recipe_training.py", JOEY: "joey_training.py"}
RATIO = "ours / JoeyNMT"
BAR = 3.0
TEXT = (
    "Target tokens trained on, and cross-entropy of the validation set in nats per "
    "real target token (EOS included, without smoothing), after equal CPU time of the "
    "whole process. Pre-norm, all embeddings tied, dropout, label smoothing, Adam and "
    "the learning rate's schedule are the same; JoeyNMT trains in float32 and makes "
    "batches without regard to length, ours are those of the recipe."
)


def trained(name: str, python: Path | str, task: dict, folder: Path) -> list[dict]:
    """The reports of a program: first its start, then each point.

    Raises:
        RuntimeError: the program failed.
    """
    folder.mkdir()
    path = folder / "task.json"
    path.write_text(json.dumps({**task, "folder": str(folder / "run")}))
    threads = str(task["threads"])
    environment = os.environ | {
        "PYTHONPATH": str(FOLDER.parent),
        "OMP_NUM_THREADS": threads,
        "MKL_NUM_THREADS": threads,
        "TF_NUM_INTRAOP_THREADS": threads,
        "TF_NUM_INTEROP_THREADS": "1",
    }
    command = [str(python), str(FOLDER / "peers" / SCRIPTS[name]), str(path)]
    done = subprocess.run(  # noqa: S603
        command, env=environment, capture_output=True, text=True
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or len(lines) != 1 + len(task["points"]):
        raise RuntimeError(f"{name} failed:\n{done.stdout[-500:]}{done.stderr[-3000:]}")
    return [json.loads(line) for line in lines]


def rows_of(found: dict[str, list[dict]]) -> list[TableRow]:
    """A row for each point."""
    rows: list[TableRow] = []
    for ours, other in zip(found[OURS][1:], found[JOEY][1:], strict=True):
        if ours["scored"] != other["scored"]:
            raise RuntimeError(
                "The programs scored different tokens: "
                f"{ours['scored']} and {other['scored']}"
            )
        rows.append(
            {
                "CPU seconds": round(ours["seconds"]),
                "tokens, ours": ours["tokens"],
                f"tokens, {JOEY}": other["tokens"],
                RATIO: ours["tokens"] / max(other["tokens"], 1),
                "bar": BAR,
                "loss, ours": ours["loss"],
                f"loss, {JOEY}": other["loss"],
            }
        )
    return rows


@app.command()
def main(
    data: Annotated[
        str, typer.Option(help="The corpus, as for kav train.")
    ] = "multi30k",
    source: Annotated[str, typer.Option(help="Language to translate from.")] = "en",
    target: Annotated[str, typer.Option(help="Language to translate into.")] = "de",
    seconds: Annotated[
        str, typer.Option(help="CPU seconds after which to compare, such as 30,240.")
    ] = "30,60,120,180,240",
    layers: Annotated[int, typer.Option(min=1, help="Layers of each side.")] = 4,
    width: Annotated[int, typer.Option(min=4, help="Width of the models.")] = 128,
    vocabulary: Annotated[int, typer.Option(min=5, help="Joint subwords.")] = 2000,
    batch_tokens: Annotated[
        int, typer.Option(min=64, help="Source and target positions of a batch.")
    ] = 4096,
    precision: Annotated[str, typer.Option(help="Precision of ours.")] = "auto",
    threads: Annotated[int, typer.Option(min=1, help="Threads of a program.")] = 1,
    peer_python: Annotated[
        Path | None,
        typer.Option(envvar="JOEYNMT_PYTHON", help="An interpreter with JoeyNMT."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="File for the numbers, as JSON.")
    ] = None,
) -> None:
    """Tokens per CPU-second and validation loss, ours and JoeyNMT's."""
    points = [float(word) for word in seconds.split(",")]
    python = peer_python or environments.interpreter("joeynmt")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cache = folder / "cache"
        corpus = kav.data.load_corpus(data, source, target, cache_dir=cache)
        tokenizer = kav.Tokenizer.train(corpus.files("train"), vocabulary)
        tokenizer.save(folder / "tokenizer.model")
        pieces = "".join(f"{piece}\n" for piece in tokenizer.pieces[4:])
        (folder / "pieces.txt").write_text(pieces, "utf-8")
        task = {
            "points": points,
            "source": source,
            "target": target,
            "tokenizer": str(folder / "tokenizer.model"),
            "pieces": str(folder / "pieces.txt"),
            "cache": str(cache),
            "sizes": {
                "num_layers": layers,
                "hidden_dim": width,
                "intermediate_dim": 4 * width,
                "num_heads": 4,
            },
            "dropout": 0.1,
            "label_smoothing": 0.1,
            "learning_rate": 2e-3,
            "warmup_steps": 400,
            "batch_tokens": batch_tokens,
            "precision": precision,
            "threads": threads,
            "seed": 1,
        }
        programs = {OURS: (sys.executable, data), JOEY: (python, corpus.folder)}
        found = {
            name: trained(
                name, python, {**task, "data": str(Path(place))}, folder / name
            )
            for name, (python, place) in programs.items()
        }
    for name, lines in found.items():
        print(
            f"{name}: {lines[0]['parameters']:,} parameters, "
            f"{lines[0]['start']:.0f} CPU seconds before the first update, "
            f"{lines[-1]['updates']:,} updates"
        )
    setting = (
        f"{layers} + {layers} layers of {width}, vocabulary of {vocabulary:,}, batches "
        f"of {batch_tokens:,} positions, precision {precision}, threads: {threads}"
    )
    rows = rows_of(found)
    report = Report("Training beside JoeyNMT", TEXT, setting, rows, (RATIO,))
    report.show()
    if output is not None:
        report.write(output)


if __name__ == "__main__":
    app()
