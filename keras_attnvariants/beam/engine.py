"""Runs pipelines, and divides large files into parts for their workers."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from typing import NamedTuple

from keras_attnvariants.utils.checks import check_integer
from keras_attnvariants.utils.lines import lines_between
from keras_attnvariants.utils.machine import check_extra

# The DirectRunner first tries a program that it would have to download.
_LOCAL = "FnApiRunner"


def check_beam() -> None:
    """Raises unless Apache Beam is installed.

    Raises:
        ValueError: says how to install it.
    """
    what = "A pipeline (best in an environment of its own)"
    check_extra(what, "beam", ("apache_beam",))


def arguments(options: Sequence[str], workers: int) -> list[str]:
    """The options of a pipeline as Beam reads them.

    Args:
        options: those of the caller, such as `--runner=FlinkRunner`.
        workers: processes on this machine, if no runner is named.

    Raises:
        ValueError: both are given, or an option is none.
    """
    check_integer("workers", workers)
    for option in options:
        if not option.startswith("--"):
            raise ValueError(
                "`options` must be those of Beam, such as '--runner=FlinkRunner'. "
                f"Received: {option!r}"
            )
    if any(option.partition("=")[0] == "--runner" for option in options):
        if workers > 1:
            raise ValueError(
                "`workers` are processes on this machine: give the options of the "
                f"runner instead. Received: workers={workers} and {list(options)}"
            )
        return list(options)
    return [
        f"--runner={_LOCAL}",
        "--direct_running_mode=multi_processing",
        f"--direct_num_workers={workers}",
        *options,
    ]


@contextmanager
def pipeline(options: Sequence[str], workers: int) -> Iterator[Any]:
    """Context in which a `beam.Pipeline` is put together; it runs at the end.

    Raises:
        ValueError: Beam is not installed, or the options are wrong.
        RuntimeError: by Beam, when a worker fails.
    """
    check_beam()
    import apache_beam as beam
    from apache_beam.options.pipeline_options import PipelineOptions

    parsed = PipelineOptions(arguments(options, workers))
    with beam.Pipeline(options=parsed) as steps:
        yield steps


def count(numbers: Mapping[str, int]) -> None:
    """Adds to counters that the runner shows."""
    from apache_beam.metrics import Metrics

    for name, number in numbers.items():
        Metrics.counter("prepare", name).inc(number)


class Part(NamedTuple):
    """The lines of a file that begin in a range of bytes.

    Attributes:
        file: the file, on a disk that all workers see.
        output: the stem of what is written, beside others of the same file.
        start: first byte of the range.
        stop: first byte behind it.
    """

    file: str
    output: str
    start: int
    stop: int

    def lines(self) -> Iterator[bytes]:
        """The lines, without their ends."""
        with open(self.file, "rb") as file:
            yield from lines_between(file, self.start, self.stop)


def parts_of(file: Path, output: Path, size: int) -> list[Part]:
    """The parts of a file; their outputs have its name and a number at the end."""
    end = file.stat().st_size
    return [
        Part(str(file), f"{output}-{start // size:06}", start, min(start + size, end))
        for start in range(0, end, size)
    ]


def join(files: Iterable[Path], whole: Path) -> None:
    """Writes files one after another, and removes them."""
    with whole.open("wb") as output:
        for file in files:
            with file.open("rb") as part:
                shutil.copyfileobj(part, output, 1 << 22)
            file.unlink()
