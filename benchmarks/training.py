"""The speed of training, compared with PyTorch on equal weights and batches."""

import json
import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Annotated
from typing import Any

import numpy as np
import typer
from measuring import Report
from measuring import TableRow
from measuring import in_turns
from measuring import ratio
from measuring import uses_avx512
from peers import environments

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

FOLDER = Path(__file__).resolve().parent
OURS = {
    "ours, float32": {"policy": "float32", "jit": False},
    "ours, float32, XLA": {"policy": "float32", "jit": True},
    "ours, bfloat16": {"policy": "mixed_bfloat16", "jit": False},
}
PYTORCH = {
    "PyTorch, float32": {"bfloat16": False, "compile": False},
    "PyTorch, bfloat16": {"bfloat16": True, "compile": False},
    "PyTorch, float32, compiled": {"bfloat16": False, "compile": True},
    "PyTorch, bfloat16, compiled": {"bfloat16": True, "compile": True},
}
RATIO = "our best / it"
# Bars by precision, with and without AVX512.
BARS = {"float32": {True: 1.6, False: 1.15}, "bfloat16": {True: 1.1}}

TEXT = (
    "Target tokens per second in training, on batches without padding: pre-norm, "
    "tied embeddings, dropout on embeddings and on the output of every sub-layer, "
    "label smoothing, Adam. All programs begin with the same weights and see the "
    "same batches. PyTorch's model is written for PyTorch, with fused projections, "
    "its own attention kernel and its fused optimizer. The ratio is that of our "
    "fastest program."
)


class Trainee:
    """A process that trains on request.

    Raises:
        RuntimeError: the process ended before it had answered.
    """

    def __init__(self, python: str | Path, script: str, threads: int, cores: set[int]):
        environment = os.environ | {
            "PYTHONPATH": str(FOLDER.parent),
            "OMP_NUM_THREADS": str(threads),
            "TF_NUM_INTRAOP_THREADS": str(threads),
            "TF_NUM_INTEROP_THREADS": str(threads),
            "TF_CPP_MIN_LOG_LEVEL": "2",
        }
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(  # noqa: S603
            [str(python), str(FOLDER / "peers" / script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
            env=environment,
        )
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(self.process.pid, cores)

    def ask(self, **request: Any) -> dict[str, Any]:
        """The answer of the process to a request."""
        # If the process has ended, the log says why.
        with suppress(BrokenPipeError):
            print(json.dumps(request), file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            self.log.seek(0)
            raise RuntimeError(f"Training failed:\n{self.log.read()[-3000:]}")
        return json.loads(line)

    def __enter__(self) -> "Trainee":
        return self

    def __exit__(self, *_) -> None:
        self.process.kill()
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()
        self.log.close()


def torch_names(weights: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Our weights by path, in the names and the layout of PyTorch's model."""

    def joined(*paths: str) -> np.ndarray:
        return np.concatenate([weights[path].T for path in paths])

    named = {"embedding.weight": weights["embeddings/target/embeddings"]}
    for path, value in weights.items():
        block, *rest = path.split("/")
        side, _, place = block.partition("_")
        if place == "norm":
            target = f"{block}"
        elif side in ("encoder", "decoder"):
            target = f"{side}.{place}." + {
                "self_residual": "self_norm",
                "cross_residual": "cross_norm",
                "ff_residual": "feed_norm",
            }.get(rest[0], "")
        else:
            continue
        if rest[-1] in ("gamma", "beta"):
            named[f"{target}.{ {'gamma': 'weight', 'beta': 'bias'}[rest[-1]] }"] = value
        elif rest[-2:] == ["intermediate", "kernel"]:
            named |= feed_forward(weights, path, target)
        elif rest[-2:] == ["query", "kernel"]:
            stem = path.removesuffix("query/kernel")
            q, k, v = (f"{stem}{name}/kernel" for name in ("query", "key", "value"))
            layer = f"{target}{rest[0]}"
            named[f"{layer}.output.weight"] = weights[f"{stem}output/kernel"].T
            if rest[0] == "self_attention":
                named[f"{layer}.qkv.weight"] = joined(q, k, v)
            else:
                named[f"{layer}.q.weight"] = joined(q)
                named[f"{layer}.kv.weight"] = joined(k, v)
    return named


def feed_forward(weights, path: str, target: str) -> dict[str, np.ndarray]:
    """The four weights of a feed-forward layer, given one of them."""
    stem = path.removesuffix("intermediate/kernel")
    return {
        f"{target}inner.weight": weights[path].T,
        f"{target}inner.bias": weights[f"{stem}intermediate/bias"],
        f"{target}outer.weight": weights[f"{stem}output/kernel"].T,
        f"{target}outer.bias": weights[f"{stem}output/bias"],
    }


def prepare(folder: Path, vocabulary: int, batch: int, length: int) -> Path:
    """Writes a few batches of random tokens."""
    rng = np.random.default_rng(1)
    ids = rng.integers(4, vocabulary, (3, 4, batch, length)).astype("int64")
    path = folder / "batches.npz"
    np.savez(path, source=ids[0], target=ids[1], labels=ids[2])
    return path


def rows_of(
    seconds: dict[str, list[float]], tokens: int, losses: dict[str, list[float]]
) -> list[TableRow]:
    """A row per program; PyTorch's fastest in each precision has the bar."""
    medians = {name: float(np.median(times)) for name, times in seconds.items()}
    best = min((name for name in medians if name in OURS), key=medians.get)
    barred = {}
    for precision in BARS:
        own = [name for name in medians if name in PYTORCH and precision in name]
        if own:
            bar = BARS[precision].get(uses_avx512())
            barred[min(own, key=medians.get)] = bar
    return [
        {
            "program": name,
            "tokens per second": tokens / medians[name],
            RATIO: ratio(times, seconds[best]),
            "bar": barred.get(name),
            "first loss": losses[name][0],
            "last loss": losses[name][-1],
        }
        for name, times in seconds.items()
    ]


@app.command()
def main(
    width: Annotated[int, typer.Option(min=4, help="Width of the models.")] = 256,
    layers: Annotated[
        int, typer.Option(min=1, help="Layers of the encoder, and of the decoder.")
    ] = 3,
    heads: Annotated[int, typer.Option(min=1, help="Heads of attention.")] = 4,
    vocabulary: Annotated[
        int, typer.Option(min=20, help="Tokens of the vocabulary.")
    ] = 8000,
    batch: Annotated[int, typer.Option(min=1, help="Sentences in a batch.")] = 64,
    length: Annotated[int, typer.Option(min=1, help="Tokens in a sentence.")] = 32,
    updates: Annotated[int, typer.Option(min=1, help="Updates of a run.")] = 4,
    runs: Annotated[int, typer.Option(min=1, help="Timed runs of each program.")] = 7,
    threads: Annotated[int, typer.Option(min=1, help="Threads of every program.")] = 1,
    cores: Annotated[
        str, typer.Option(help="Cores to run on, such as 0,1; default: the first.")
    ] = "",
    compiled: Annotated[
        bool, typer.Option(help="Whether PyTorch is measured compiled as well.")
    ] = True,
    precision: Annotated[
        list[str], typer.Option(help="Precisions of the programs; may be repeated.")
    ] = list(BARS),  # noqa: B006
    peer_python: Annotated[
        Path | None,
        typer.Option(envvar="PEER_PYTHON", help="An interpreter that has PyTorch."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="File for the numbers, as JSON.")
    ] = None,
) -> None:
    """Training tokens per second, ours and PyTorch's, in turns."""
    sizes = {
        "vocabulary_size": vocabulary,
        "num_layers": layers,
        "hidden_dim": width,
        "intermediate_dim": 4 * width,
        "num_heads": heads,
    }
    task = {"sizes": sizes, "dropout": 0.1, "smoothing": 0.1, "learning_rate": 1e-4}
    allowed = {int(core) for core in cores.split(",")} if cores else set(range(threads))
    python = peer_python or environments.interpreter("torch")

    def chosen(programs: dict[str, dict]) -> dict[str, dict]:
        """The programs in the precisions that are measured."""
        return {
            name: options
            for name, options in programs.items()
            if any(each in name for each in precision)
        }

    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        task["batches"] = str(prepare(folder, vocabulary, batch, length))
        task["weights"] = str(folder / "weights.npz")
        trainees, counts = {}, set()
        for name, options in chosen(OURS).items():
            script = sys.executable, "keras_training.py", threads, allowed
            trainees[name] = stack.enter_context(Trainee(*script))
            answer = trainees[name].ask(task=task | options)
            counts.add(answer["parameters"])
        data = dict(np.load(task.pop("batches")))
        data |= torch_names(dict(np.load(task.pop("weights"))))
        task["data"] = str(folder / "torch.npz")
        np.savez(task["data"], **data)
        for name, options in chosen(PYTORCH).items():
            if options["compile"] and not compiled:
                continue
            script = python, "torch_training.py", threads, allowed
            trainees[name] = stack.enter_context(Trainee(*script))
            answer = trainees[name].ask(task=task | options | {"threads": threads})
            counts.add(answer["parameters"])
        if len(counts) > 1:
            raise RuntimeError(f"Models differ in parameters: {sorted(counts)}")
        losses = {name: [] for name in trainees}

        def run(name):
            losses[name] += trainees[name].ask(updates=updates)["losses"]

        programs = {name: partial(run, name) for name in trainees}
        for program in programs.values():
            program()  # compiles
        seconds = in_turns(programs, runs)
    rows = rows_of(seconds, updates * batch * length, losses)
    setting = (
        f"{layers} + {layers} layers of {width}, {heads} heads, vocabulary of "
        f"{vocabulary:,}, {batch} x {length} tokens, threads: {threads}"
    )
    report = Report("Training compared with PyTorch", TEXT, setting, rows, (RATIO,))
    report.show()
    if output is not None:
        report.write(output)


if __name__ == "__main__":
    app()
