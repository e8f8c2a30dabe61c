"""Limits and scheduling of requests to MLServer. Does not need MLServer itself."""

import asyncio
import contextlib
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop
from heapq import heappush
from typing import TYPE_CHECKING
from typing import Any

if TYPE_CHECKING:
    from starlette.types import ASGIApp
    from starlette.types import Message
    from starlette.types import Receive
    from starlette.types import Scope
    from starlette.types import Send

# Bytes of a request, over HTTP and gRPC.
MAX_BYTES = 1_000_000

# Bytes of the texts that are translated at once, padded to the longest: as many as
# one processor translates in about a second.
TURN_BYTES = 1 << 14


def protect(app: Any, timeout: float) -> None:
    """Prepares the application of MLServer before it starts.

    Turns off the pages of documentation, which load programs from elsewhere. A body
    that is not a request is answered with status 400 and one line.

    Args:
        app: a FastAPI application.
        timeout: seconds within which a request must have arrived.
    """
    from fastapi.exceptions import RequestValidationError

    async def refuse(request: Any, error: Any) -> Any:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        text = f"The body must be an inference request. Received: {place}: "
        return refusal(400, f"{text}{first['msg']}"[:300])

    app.add_exception_handler(RequestValidationError, refuse)
    routes = app.router.routes
    routes[:] = [each for each in routes if not each.path.endswith("/docs")]
    app.add_middleware(Guard, timeout=timeout)


@dataclass(eq=False)
class Guard:
    """Reads requests within limits, and cancels their work if the client disconnects.

    Args:
        app: an ASGI application.
        timeout: seconds within which a request must have arrived.
    """

    app: "ASGIApp"
    timeout: float

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Answers one request."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        if dict(scope["headers"]).get(b"content-encoding", b"identity") != b"identity":
            # A small request might expand to a huge one.
            answer = refusal(415, "A request must not be compressed.")
            return await answer(scope, receive, send)
        body, more = b"", True
        try:
            async with asyncio.timeout(self.timeout):
                while more and len(body) <= MAX_BYTES:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return None
                    body += message.get("body", b"")
                    more = message.get("more_body", False)
        except TimeoutError:
            text = f"A request must arrive within {self.timeout:g} seconds."
            return await refusal(408, text)(scope, receive, send)
        if len(body) > MAX_BYTES:
            text = f"A request must not have more than {MAX_BYTES:,} bytes."
            return await refusal(413, text)(scope, receive, send)
        gone = asyncio.ensure_future(receive())
        bodies = [{"type": "http.request", "body": body}]

        async def read() -> "Message":
            return bodies.pop() if bodies else await asyncio.shield(gone)

        work = asyncio.ensure_future(self.app(scope, read, send))
        try:
            await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            work.cancel()
            gone.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await work
        return None


def refusal(status: int, text: str) -> Any:
    """An error response; closes the connection, as the rest of it is not read."""
    from fastapi.responses import JSONResponse

    return JSONResponse({"error": text}, status, {"connection": "close"})


@dataclass(eq=False)
class Turns:
    """Translates requests in turns, each with as many texts as fit.

    Requests share the turns fairly, by the length of their texts: each text waits for
    the time at which it would be translated if its request had an equal share of the
    processor (Golestani 1994, "self-clocked fair queueing"). A long text does not join
    a turn that has many short ones, which would be padded to its length. A request that
    is cancelled gets no more turns.

    Args:
        translator: translates a list of texts, in a thread.
        max_batch: number of texts in a turn, at most.
        longest: bytes of a text that are read; further bytes cost nothing.
        max_wait: seconds that the first turn after a pause waits for requests.
    """

    translator: Callable[[list[str]], list[str]]
    max_batch: int
    longest: int
    max_wait: float

    def __post_init__(self) -> None:
        self._queue: list[tuple[float, int, str, asyncio.Future[str]]] = []
        self._numbers = itertools.count()
        self._time = 0.0
        self._worker: asyncio.Task[None] | None = None

    async def translate(self, texts: list[str]) -> list[str]:
        """The translations of texts.

        Raises:
            Exception: the exception that translating them raised.
        """
        loop = asyncio.get_running_loop()
        answers = [loop.create_future() for _ in texts]
        time = self._time
        pairs = zip(texts, answers, strict=True)
        for text, answer in sorted(pairs, key=lambda pair: self._size(pair[0])):
            time += max(self._size(text), TURN_BYTES / self.max_batch)
            heappush(self._queue, (time, next(self._numbers), text, answer))
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._work())
        try:
            return list(await asyncio.gather(*answers))
        finally:
            for answer in answers:
                answer.cancel()
            # A sorted list is a heap.
            self._queue = sorted(x for x in self._queue if not x[-1].done())

    async def _work(self) -> None:
        """Takes turns while texts wait."""
        await asyncio.sleep(self.max_wait)
        while turn := self._next_turn():
            texts = [text for text, _ in turn]
            try:
                found = await asyncio.to_thread(self.translator, texts)
            except Exception as error:
                for _, answer in turn:
                    if not answer.done():
                        answer.set_exception(error)
                continue
            for (_, answer), translation in zip(turn, found, strict=True):
                if not answer.done():
                    answer.set_result(translation)

    def _next_turn(self) -> list[tuple[str, asyncio.Future[str]]]:
        """The next texts, and the futures of their translations."""
        turn: list[tuple[str, asyncio.Future[str]]] = []
        longest = 1
        while self._queue and len(turn) < self.max_batch:
            time, _, text, answer = self._queue[0]
            longest = max(longest, self._size(text))
            if turn and (len(turn) + 1) * longest > TURN_BYTES:
                break
            heappop(self._queue)
            self._time = time
            turn.append((text, answer))
        return turn

    def _size(self, text: str) -> int:
        return min(len(text.encode("utf-8", "replace")), self.longest)
