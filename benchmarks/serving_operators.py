"""The time of an exported model by kind of operator."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Annotated
from typing import Any

import typer
from decoding import Output
from decoding import Work
from decoding import finish
from measuring import Report
from measuring import TableRow
from peers import model
from serving import LENGTH
from serving import SIZES
from serving import Form
from serving import Size
from serving import export

BENCHMARKS = Path(__file__).resolve().parent

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

TEXT = (
    "Microseconds of the processor for one position of all hypotheses, the encoder's "
    "work included, in a process that has TensorFlow and not this package, on one "
    "thread. Kernels are those that TensorFlow's profiler records; it leaves out "
    "operators that it considers short. The rest is these, and the executor's work "
    "between operators."
)

# The kinds of operators of each row; those that are in no row are other kernels.
ROWS = {
    "products with weights": (
        *("MatMul", "_FusedMatMul", "_MklMatMul", "_MklNativeFusedMatMul"),
        *("_QuantizedMatMul", "_MklQuantizedMatMul"),
    ),
    "products of attention": ("BatchMatMulV2", "_MklBatchMatMulV2"),
    "softmax": ("Softmax", "_MklSoftmax"),
    "best tokens": ("TopKV2", "Max"),
    "changes of dtype": ("Cast",),
}
OTHERS = "other kernels"
REST = "short operators and the executor"


def profile(path: Path, vocabulary: int, batches: list[int]) -> dict[str, Any]:
    """The output of `peers/profiled.py`, by the number of sentences in a request."""
    done = subprocess.run(  # noqa: S603
        [
            *(sys.executable, str(BENCHMARKS / "peers" / "profiled.py"), str(path)),
            *map(str, (vocabulary, *batches)),
        ],
        env=os.environ | {"TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1"},
        check=True,
        capture_output=True,
        text=True,
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def table_rows(profiles: dict[str, Any]) -> list[TableRow]:
    """Rows of operators, with a column for each number of sentences."""
    names = {kind: name for name, kinds in ROWS.items() for kind in kinds}
    rows: dict[str, TableRow] = {
        name: {"operators": name} for name in (*ROWS, OTHERS, REST)
    }
    for batch, found in profiles.items():
        seconds = dict.fromkeys(rows, 0.0)
        for kind, (_, spent) in found["operators"].items():
            seconds[names.get(kind, OTHERS)] += spent
        seconds[REST] = found["seconds"] - sum(seconds.values())
        for name, spent in seconds.items():
            rows[name][f"µs, batch {batch}"] = 1e6 * spent / LENGTH
            rows[name][f"%, batch {batch}"] = 100 * spent / found["seconds"]
    return [*rows.values()]


@app.command()
def main(
    size: Annotated[Size, typer.Option(help="Width of the model.")] = Size.SMALL,
    precision: Annotated[Form, typer.Option(help="Precision.")] = Form.AUTO,
    variant: Annotated[str, typer.Option(help="Variant of the model.")] = "base",
    batch: Annotated[
        list[int] | None, typer.Option(min=1, help="Sentences; default: 1 and 64.")
    ] = None,
    title: Annotated[
        str, typer.Option(help="Title of the table.")
    ] = "Where the time of an exported model goes",
    output: Output = None,
) -> None:
    """The time of an exported model by kind of operator, with a beam of 4."""
    work = Work(*SIZES[size], LENGTH, LENGTH, 4, 1, 1, "")
    with tempfile.TemporaryDirectory() as folder:
        weights = Path(folder) / "weights.npz"
        model.write(weights, work.sizes)
        path = export(variant, precision, work, weights, 256)
        rows = table_rows(profile(path, work.vocabulary, batch or [1, 64]))
    setting = f"{variant}, {precision.value}, width {size.value}, beam of 4"
    finish(
        Report(title, TEXT, f"{setting}, {LENGTH} tokens in and out, 1 thread", rows),
        output,
    )


if __name__ == "__main__":
    app()
