"""Runs pipelines, on this machine or where the options of Beam say."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Sequence
from contextlib import contextmanager
from typing import Any

from keras_attnvariants.utils.checks import check_integer
from keras_attnvariants.utils.packages import check_extra

_LOCAL = "DirectRunner"


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
