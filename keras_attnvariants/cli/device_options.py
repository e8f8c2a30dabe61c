"""The options of `kav train` for several devices and processes."""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated
from typing import Any

import typer

from keras_attnvariants.cli.checks import checked
from keras_attnvariants.utils.checks import check_positive


def option(help: str, **options: Any) -> Any:
    """An option in the panel of devices."""
    panel = "Devices and processes (KERAS_BACKEND=jax)"
    return typer.Option(help=help, show_default=False, rich_help_panel=panel, **options)


@dataclass(frozen=True, kw_only=True)
class DeviceOptions:
    """Where a model is trained.

    Raises:
        ValueError: an option lacks another.
    """

    devices: Annotated[
        int | None,
        option("Devices of each process (1; all with --coordinator).", min=1),
    ] = None
    model_parallel: Annotated[
        int | None,
        option(
            "Devices of a process among which each copy of the model is divided (1).",
            min=1,
        ),
    ] = None
    coordinator: Annotated[
        str | None, option("host:port of process 0, where it waits for the others.")
    ] = None
    process: Annotated[
        int | None,
        option("Number of this process; number 0 writes the folder of the run.", min=0),
    ] = None
    processes: Annotated[
        int | None,
        option("How many processes there are, each started with this command.", min=2),
    ] = None
    wait: Annotated[
        float | None,
        option(
            "How long to wait for all processes, in seconds (300).",
            callback=checked(check_positive),
        ),
    ] = None

    def __post_init__(self) -> None:
        if self.coordinator is None:
            if (self.process, self.processes, self.wait) != (None, None, None):
                raise ValueError("--process, --processes and --wait need --coordinator")
        elif self.process is None or self.processes is None:
            raise ValueError("--coordinator needs --process and --processes")
        if self.model_parallel is not None and not self._several:
            raise ValueError(
                "--model-parallel needs --devices of more than 1, or --coordinator"
            )

    @property
    def _several(self) -> bool:
        return self.coordinator is not None or self.devices not in (None, 1)

    @contextlib.contextmanager
    def devices_to_use(self) -> Iterator[None]:
        """Context in which a model is trained there, and process 0 alone prints."""
        if not self._several:
            yield
            return
        from keras_attnvariants.training import several_devices

        where = several_devices(
            self.devices,
            model_parallel=self.model_parallel or 1,
            coordinator=self.coordinator,
            process=self.process or 0,
            processes=self.processes or 1,
            wait=self.wait or 300.0,
        )
        with where, contextlib.ExitStack() as stack:
            if self.process:
                nowhere = stack.enter_context(open(os.devnull, "w"))
                stack.enter_context(contextlib.redirect_stdout(nowhere))
            yield
