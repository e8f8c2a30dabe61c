"""What a client does, step by step, without doing it.

A plan is a generator that yields steps and gets their results. It is the same for
clients that wait and for those that let others work: `drive` and `drive_async` run it.
"""

import asyncio
import random
import time
from collections.abc import Awaitable
from collections.abc import Callable
from collections.abc import Generator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from typing import TypeVar

from keras_attnvariants.serving.client.errors import DeadlineError
from keras_attnvariants.serving.client.errors import ServerUnavailableError

T = TypeVar("T")
Plan = Generator[Any, Any, T]


@dataclass(frozen=True)
class Request:
    """Bytes for the server.

    Attributes:
        path: method of gRPC, or path of HTTP.
        body: `None` for a request of HTTP that has none.
    """

    path: str
    body: bytes | None


@dataclass(frozen=True)
class Send:
    """Step: send a request and return the body of the reply.

    Attributes:
        request: what to send.
        timeout: seconds.
    """

    request: Request
    timeout: float


@dataclass(frozen=True)
class Pause:
    """Step: wait for some seconds."""

    seconds: float


@dataclass(frozen=True)
class Together:
    """Step: run plans at the same time, some at once, and return their results."""

    plans: Sequence[Plan[Any]]


@dataclass(frozen=True)
class Retries:
    """How often a request is sent again to a server that is not available.

    The pauses double, and vary by chance so that clients do not come back together.

    Attributes:
        count: times that a request is sent again.
        first: seconds of the first pause, at most.
        longest: seconds of any pause, at most.
    """

    count: int = 5
    first: float = 0.25
    longest: float = 4.0

    def pause(self, number: int) -> float:
        """Seconds before the request is sent again, counted from 0."""
        longest = min(self.longest, self.first * 2**number)
        return random.uniform(longest / 2, longest)


def exchange(request: Request, timeout: float, retries: Retries) -> Plan[bytes]:
    """The reply to a request, which is sent again while nobody is available.

    Args:
        request: what to send.
        timeout: seconds for all of it.
        retries: when to send again.

    Raises:
        ServerUnavailableError: the last time, too, nobody was available.
        DeadlineError: the time is over.
    """
    end = time.monotonic() + timeout
    number = 0
    while True:
        try:
            reply: bytes = yield Send(request, max(end - time.monotonic(), 0.0))
            return reply
        except ServerUnavailableError as error:
            if number == retries.count:
                raise
            pause = retries.pause(number)
            if time.monotonic() + pause >= end:
                raise DeadlineError(
                    f"{error}; tried {number + 1} times in {timeout:g} seconds"
                ) from error
        yield Pause(pause)
        number += 1


def drive(plan: Plan[T], send: Callable[[Send], bytes], together: int) -> T:
    """Runs a plan and returns what it returns; `together` plans run at once."""
    from concurrent.futures import ThreadPoolExecutor

    def perform(step: Any) -> Any:
        if isinstance(step, Send):
            return send(step)
        if isinstance(step, Pause):
            return time.sleep(step.seconds)
        if len(step.plans) == 1 or together == 1:
            return [drive(part, send, together) for part in step.plans]
        with ThreadPoolExecutor(together) as pool:
            futures = [pool.submit(drive, part, send, 1) for part in step.plans]
            try:
                return [future.result() for future in futures]
            finally:
                # After a failure those that wait need not begin.
                pool.shutdown(wait=True, cancel_futures=True)

    try:
        step = next(plan)
        while True:
            try:
                result = perform(step)
            except Exception as error:
                step = plan.throw(error)
            else:
                step = plan.send(result)
    except StopIteration as stop:
        value: T = stop.value
        return value


async def drive_async(
    plan: Plan[T], send: Callable[[Send], Awaitable[bytes]], together: int
) -> T:
    """The same for coroutines."""

    async def perform(step: Any) -> Any:
        if isinstance(step, Send):
            return await send(step)
        if isinstance(step, Pause):
            return await asyncio.sleep(step.seconds)
        places = asyncio.Semaphore(together)

        async def run(part: Plan[Any]) -> Any:
            async with places:
                return await drive_async(part, send, together)

        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(run(part)) for part in step.plans]
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from None
        return [task.result() for task in tasks]

    try:
        step = next(plan)
        while True:
            try:
                result = await perform(step)
            except Exception as error:
                step = plan.throw(error)
            else:
                step = plan.send(result)
    except StopIteration as stop:
        value: T = stop.value
        return value
