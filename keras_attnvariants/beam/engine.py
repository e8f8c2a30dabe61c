"""Runs pipelines, and divides large files into parts for their workers."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from typing import NamedTuple

from keras_attnvariants.utils.checks import check_integer
from keras_attnvariants.utils.lines import lines_between
from keras_attnvariants.utils.machine import check_extra

_LOCAL = "DirectRunner"
# Bytes of text that a worker takes at a time.
PART_BYTES = 1 << 24


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

    given = arguments(options, workers)
    parsed = PipelineOptions(given)
    # The DirectRunner first tries a program that it would have to download.
    runner = _local_runner(parsed) if f"--runner={_LOCAL}" in given else None
    steps = beam.Pipeline(runner=runner, options=parsed)
    yield steps
    steps.run().wait_until_finish()


def _local_runner(options: Any) -> Any:
    """Beam's runner for the processes of one machine."""
    from apache_beam.portability.api import beam_provision_api_pb2
    from apache_beam.runners.portability.fn_api_runner import fn_runner
    from apache_beam.runners.portability.portable_runner import JobServiceHandle

    encoded = JobServiceHandle.encode_pipeline_options(options.get_all_options())
    info = beam_provision_api_pb2.ProvisionInfo(pipeline_options=encoded)
    return fn_runner.FnApiRunner(provision_info=fn_runner.ExtendedProvisionInfo(info))


def count(namespace: str, name: str, number: int = 1) -> None:
    """Adds to a counter that the runner shows."""
    from apache_beam.metrics import Metrics

    Metrics.counter(namespace, name).inc(number)


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

    def lines(self, drop_mark: bool) -> Iterator[bytes]:
        """The lines, without a byte order mark of the file if that is to be dropped."""
        with open(self.file, "rb") as file:
            is_start = drop_mark and self.start == 0
            yield from lines_between(file, self.start, self.stop, is_start)


def parts_of(file: Path, output: Path) -> list[Part]:
    """The parts of a file; their outputs have its name and a number at the end."""
    size = file.stat().st_size
    return [
        Part(str(file), f"{output}-{number:06}", start, min(start + PART_BYTES, size))
        for number, start in enumerate(range(0, size, PART_BYTES))
    ]


def join(files: Iterable[Path], whole: Path) -> None:
    """Writes files one after another, and removes them."""
    with whole.open("wb") as output:
        for file in files:
            with file.open("rb") as part:
                shutil.copyfileobj(part, output, 1 << 22)
            file.unlink()
