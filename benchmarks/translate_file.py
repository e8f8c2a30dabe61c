"""The time of whole processes that translate a file of text, start included.

The same trained model translates by `kav translate` and by CTranslate2. The processes
take turns on one core, and their CPU time counts.
"""

import os
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from statistics import median
from typing import Annotated

import typer
from decoding import Output
from decoding import finish
from measuring import Report
from measuring import ratio
from measuring import rounds
from measuring import uses_avx512
from serving import cores
from serving import seconds_of

BENCHMARKS = Path(__file__).resolve().parent
PEER = "CTranslate2, int8"
BARS = {"kav translate --saved-model": {True: 1.0, False: 0.7}}

TEXT = (
    "CPU seconds of whole processes that read a file, translate it and write it, on "
    "one core, from the start of Python to its end. CTranslate2 has the same weights, "
    "with int8 and batches of 32 sentences, and SentencePiece; `kav translate` has its "
    "defaults, except for the given options. The ratio is that of CTranslate2's "
    "seconds to ours, the median over rounds: above 1 means faster."
)

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


def kav(*arguments: str | Path) -> tuple[str, ...]:
    """The arguments of Python for a command of this package."""
    return ("-m", "keras_attnvariants", *map(str, arguments))


def export(model: str, path: Path, *options: str) -> Path:
    """Exports a model by `kav export`."""
    command = [sys.executable, *kav("export", "--model", model, "--output", path)]
    subprocess.run([*command, *options], check=True)  # noqa: S603
    return path


def use_one_core() -> None:
    """Restricts this process and those that it starts to one core and one thread."""
    os.environ |= {"TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1"}
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cores())


@app.command()
def translate(
    file: Annotated[Path, typer.Argument(help="Sentences, one a line.")],
    model: Annotated[
        str, typer.Option(help="A trained model with learned attention.")
    ] = "kav/base/tatoeba-en-de",
    beams: Annotated[int, typer.Option(min=2, help="Hypotheses of a sentence.")] = 4,
    precision: Annotated[
        list[str] | None, typer.Option(help="More precisions of the export.")
    ] = None,
    runs: Annotated[int, typer.Option(min=1, help="Timed runs of each.")] = 3,
    output: Output = None,
) -> None:
    """CPU seconds of translating a file by `kav translate` and by CTranslate2."""
    use_one_core()
    file = file.resolve()
    size = ("--beam-size", str(beams))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        peer = export(model, folder / "ct2", "--format", "ctranslate2")
        program = str(BENCHMARKS / "peers" / "ct2_file.py")
        commands = {PEER: (program, str(peer), str(file), str(beams))}
        read = kav("translate", "--input", file)
        commands["kav translate --model"] = (*read, "--model", model, *size)
        for form in ("auto", *(precision or ())):
            path = export(model, folder / form, "--precision", form, *size)
            label = "kav translate --saved-model"
            label += "" if form == "auto" else f", {form}"
            commands[label] = (*read, "--saved-model", str(path))
        found = rounds(
            {name: partial(seconds_of, *own) for name, own in commands.items()}, runs
        )
    lines = len(file.read_text("utf-8").splitlines())
    rows = [
        {
            "program": name,
            "CPU seconds": median(own),
            "lines per CPU second": lines / median(own),
            "of CTranslate2": ratio(found[PEER], own),
            "bar": BARS.get(name, {}).get(uses_avx512()),
        }
        for name, own in found.items()
    ]
    setting = f"{model}, {lines:,} lines, beam of {beams}, 1 thread"
    title = "A file translated by whole processes"
    finish(Report(title, TEXT, setting, rows, ("of CTranslate2",)), output)


if __name__ == "__main__":
    app()
