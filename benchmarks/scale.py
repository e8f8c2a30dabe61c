"""Estimates of the time that a large corpus takes on many devices.

The operations and the bytes of gradients are counted here, and the tokens per second of
the input pipeline are measured. The speed of a device is its maker's figure times an
assumed share.
"""

import os
import time
from pathlib import Path
from typing import Annotated
from typing import NamedTuple

# Before TensorFlow is imported: errors only.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import typer
from flops import gradient_bytes
from flops import update_flops
from measuring import Report
from measuring import TableRow

import keras_attnvariants as kav
from keras_attnvariants.presets.counting import without_arrays

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

# WMT14 En-De: pairs, and mean lengths in tokens (You et al. 2020, Table 1).
PAIRS = 4_500_000
SOURCE, TARGET = 28.5, 29.6
PADDING = 0.1  # of positions; 0.098 is measured on news in docs/PERFORMANCE.md
SHARE = 0.3  # share of the stated peak that training reaches: assumed
BATCHES = (25_000, 400_000)  # target tokens in an update


class Machine(NamedTuple):
    """Several devices of a kind, with the figures of their maker.

    Attributes:
        devices: number of devices.
        peak: operations per second of one device, in bfloat16.
        bandwidth: bytes per second that a device sends to its neighbour.
    """

    devices: int
    peak: float
    bandwidth: float


MACHINES = {
    "8 H100, NVLink": Machine(8, 989e12, 450e9),
    "8 x 8 H100, 400 Gbit/s each": Machine(64, 989e12, 50e9),
    "TPU v5e, 4 x 4": Machine(16, 197e12, 100e9),
    "TPU v5e, 16 x 16": Machine(256, 197e12, 100e9),
}
BASE = {
    "vocabulary_size": 32_000,
    "num_layers": 6,
    "hidden_dim": 512,
    "intermediate_dim": 2048,
    "num_heads": 8,
}
BIG = BASE | {"hidden_dim": 1024, "intermediate_dim": 4096, "num_heads": 16}
MODELS = {
    "base": ("base", BASE),
    "hc-sa": ("hc-sa", BASE),
    "context": ("context", BASE),
    "big": ("base", BIG),
}


def built(variant: str, sizes: dict[str, int]) -> keras.Model:
    """A model without values."""
    preset = kav.presets.get(f"kav/{variant}/multi30k")
    return without_arrays(lambda: preset.build(**sizes))


def token_flops(model: keras.Model) -> float:
    """Operations of an update for one target token, padding included."""
    lengths = round(SOURCE), round(TARGET)
    return update_flops(model, 1, *lengths) / lengths[1] / (1 - PADDING)


def exchange_seconds(size: int, machine: Machine) -> float:
    """Seconds for a ring of devices to add up gradients of this many bytes."""
    others = (machine.devices - 1) / machine.devices
    return 2 * others * size / machine.bandwidth


def model_rows(models: dict[str, keras.Model]) -> list[TableRow]:
    """A row for each model: operations and bytes."""
    return [
        {
            "model": name,
            "parameters": f"{model.count_params():,}",
            "10^6 operations per target token": token_flops(model) / 1e6,
            "MB of gradients": gradient_bytes(model) / 1e6,
        }
        for name, model in models.items()
    ]


def machine_rows(models: dict[str, keras.Model]) -> list[TableRow]:
    """An epoch of each model on each machine, for each batch size."""
    rows: list[TableRow] = []
    for name in ("base", "big"):
        flops, size = token_flops(models[name]), gradient_bytes(models[name])
        for where, machine in MACHINES.items():
            speed = machine.devices * SHARE * machine.peak / flops
            exchange = exchange_seconds(size, machine)
            for batch in BATCHES:
                compute = batch / speed
                seconds = compute + exchange
                rows.append(
                    {
                        "model": name,
                        "machine": where,
                        "tokens of an update": f"{batch:,}",
                        "compute, ms": 1e3 * compute,
                        "exchange, ms": 1e3 * exchange,
                        "efficiency": compute / seconds,
                        "tokens per second": batch / seconds,
                        "minutes of an epoch": PAIRS * TARGET / batch * seconds / 60,
                    }
                )
    return rows


def pipeline_speed(data: str, batches: int) -> float:
    """Target tokens per CPU second that the pipeline reads from token files."""
    corpus = kav.data.load_corpus(data, "en", "de")
    tokenizer = kav.Tokenizer.train(corpus.files("train"), 8000)
    tokens = kav.data.TokenizedCorpus(corpus, tokenizer)
    dataset = iter(tokens.training_dataset(25_000, seed=1))
    next(dataset)
    start, count = time.process_time(), 0.0
    for _ in range(batches):
        _, _, weights = next(dataset)
        count += float(weights.numpy().sum())
    return count / (time.process_time() - start)


@app.command()
def main(
    data: Annotated[
        str, typer.Option(help="An English-German corpus to read.")
    ] = "multi30k",
    batches: Annotated[int, typer.Option(min=1, help="Batches to read.")] = 300,
    output: Annotated[
        Path | None, typer.Option(help="File for the numbers of machines, as JSON.")
    ] = None,
) -> None:
    """Operations, gradients, the pipeline, and an epoch on several machines."""
    models = {name: built(*what) for name, what in MODELS.items()}
    setting = f"{SHARE:.0%} of the stated peak, {PADDING:.0%} padding"
    Report("Models", "Counted.", "bfloat16", model_rows(models)).show()
    speed = pipeline_speed(data, batches)
    print(f"The pipeline gives {speed:,.0f} target tokens per CPU second.")
    text = "An epoch of WMT14 En-De on paper; gradients are exchanged after an update."
    report = Report("Machines", text, setting, machine_rows(models))
    report.show()
    if output is not None:
        report.write(output)


if __name__ == "__main__":
    app()
