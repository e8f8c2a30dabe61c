"""Functions that the benchmarks share: timing in turns, ratios, and reports."""

import dataclasses
import json
import logging
import os
import shlex
import statistics
import sys
import time
from collections.abc import Callable
from collections.abc import Hashable
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

from keras_attnvariants.utils.machine import kind_of_processor
from keras_attnvariants.utils.machine import processor_features
from keras_attnvariants.utils.machine import versions

# Compared programs trace the same code many times; TensorFlow warns of that.
logging.getLogger("tensorflow").setLevel(logging.ERROR)

# Environment variables of libraries that change the measurements.
THREADS = "TF_NUM_INTRAOP_THREADS"
ONEDNN = "TF_ENABLE_ONEDNN_OPTS"
LIMITS = (
    *("ONEDNN_MAX_CPU_ISA", "XLA_FLAGS", "CT2_FORCE_CPU_ISA"),
    *("MKL_ENABLE_INSTRUCTIONS", "ATEN_CPU_CAPABILITY"),  # of PyTorch
)
# The packages that compute.
PACKAGES = ("tensorflow", "keras", "jax", "numpy")

TableRow = dict[str, str | float]


def in_turns(
    programs: Mapping[str, Callable[[], object]],
    runs: int,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, list[float]]:
    """Measures the seconds of every run of every program.

    All take one turn per round, so that a busy machine slows all of them. The clock
    `time.process_time` leaves out the time of other programs.
    """

    def seconds(run: Callable[[], object]) -> float:
        start = clock()
        run()
        return clock() - start

    timed = {name: partial(seconds, run) for name, run in programs.items()}
    return rounds(timed, runs)


def rounds(
    programs: Mapping[Hashable, Callable[[], float]], runs: int
) -> dict[Any, list[float]]:
    """The results of every program in every round; all take one turn per round."""
    found: dict[Any, list[float]] = {name: [] for name in programs}
    for _ in track(range(runs), "Measuring", disable=not sys.stdout.isatty()):
        for name, run in programs.items():
            found[name].append(run())
    return found


def ratio(seconds: list[float], others: list[float]) -> float:
    """The median over rounds of the ratio of two programs' times."""
    return statistics.median(a / b for a, b in zip(seconds, others, strict=True))


@dataclasses.dataclass
class Report:
    """The outcome of one benchmark.

    Attributes:
        title: name of the measurement.
        text: how it was made, and how to read it; one paragraph.
        setting: sizes, precision and threads, in one line.
        rows: rows of the table, all with the titles of its columns as keys. A `"bar"`
            is the value that the row has to reach.
        judged: the columns that are compared with bars; the best of them counts.
        at_most: whether bars are upper bounds instead of lower bounds.
    """

    title: str
    text: str
    setting: str
    rows: list[TableRow]
    judged: tuple[str, ...] = ()
    at_most: bool = False

    def show(self) -> None:
        """Prints the table."""
        table = Table(title=f"{self.title} ({self.setting})")
        for key, value in self.rows[0].items():
            side = "left" if isinstance(value, str) else "right"
            table.add_column(key, justify=side, overflow="fold")
        for row in self.rows:
            table.add_row(*map(formatted, row.values()))
        Console(width=None if sys.stdout.isatty() else 120).print(table)

    def write(self, path: Path) -> None:
        """Writes the report as JSON, with the command and the machine."""
        path.parent.mkdir(parents=True, exist_ok=True)
        record = dataclasses.asdict(self)
        record |= {"command": command(), "machine": machine()}
        record["versions"] = versions(PACKAGES)
        path.write_text(json.dumps(record, indent=2) + "\n")


def formatted(value: str | float | None) -> str:
    """A cell: three significant digits, or as many as an integer has."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def command() -> str:
    """The command of this process, without local paths."""
    arguments = sys.argv[1:]
    if "--output" in arguments:
        place = arguments.index("--output")
        del arguments[place : place + 2]
    arguments = [text for text in arguments if not text.startswith("--output=")]
    script = Path(sys.argv[0]).name
    names = (THREADS, ONEDNN, *LIMITS)
    given = {name: os.environ[name] for name in names if os.environ.get(name)}
    environment = "".join(f"{n}={shlex.quote(value)} " for n, value in given.items())
    return environment + shlex.join(["python", f"benchmarks/{script}", *arguments])


def machine() -> str:
    """Processor with its instructions, cores, and limits that imitate others."""
    limit = os.environ.get(LIMITS[0])
    used = f", limited to {limit}" if limit else ""
    return f"{kind_of_processor()}{used}, {os.cpu_count()} cores"


def uses_avx512() -> bool:
    """Whether the processor has AVX512, and does not imitate one without it."""
    return "AVX512" in processor_features() and os.environ.get(LIMITS[0]) != "AVX2"
