"""Requests to MLServer: which are let in, and whose turn it is. Needs no MLServer."""

import asyncio
import contextlib
import json
from collections.abc import Awaitable
from collections.abc import Callable
from dataclasses import dataclass
from dataclasses import field
from typing import Any
from typing import TypeAlias

# Bytes of a request, over HTTP and gRPC.
MAX_BYTES = 1_000_000

# Of the texts that are translated at once, padded to the longest: as many as one
# processor translates in about a second.
TURN_BYTES = 1 << 14
# Those that had a turn have every so many turns, as long as there are others.
SHARE = 4

Message: TypeAlias = dict[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]


def protect(app: Any, timeout: float) -> None:
    """Prepares the application of MLServer before it starts.

    Pages of documentation, which load programs from elsewhere, are off. What is no
    request is answered with status 400 and one line.

    Args:
        app: an application of FastAPI.
        timeout: seconds within which a request must have come.
    """
    from fastapi.exceptions import RequestValidationError
    from fastapi.responses import JSONResponse

    async def refuse(request: Any, error: Any) -> Any:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        text = f"The body must be an inference request. Received: {place}: "
        return JSONResponse({"error": f"{text}{first['msg']}"[:300]}, 400)

    app.add_exception_handler(RequestValidationError, refuse)
    routes = app.router.routes
    routes[:] = [each for each in routes if not each.path.endswith("/docs")]
    app.add_middleware(Guard, timeout=timeout)


@dataclass(eq=False)
class Guard:
    """Reads a request, which has limits, and ends its work if the sender leaves.

    Args:
        app: an application by the ASGI.
        timeout: seconds within which a request must have come.
    """

    app: Callable[[Message, Receive, Send], Awaitable[None]]
    timeout: float

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answers one request."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        if dict(scope["headers"]).get(b"content-encoding", b"identity") != b"identity":
            # A small one might become a huge one.
            return await _refuse(send, 415, "A request must not be compressed.")
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
            text = f"A request must have come within {self.timeout:g} seconds."
            return await _refuse(send, 408, text)
        if len(body) > MAX_BYTES:
            text = f"A request must not have more than {MAX_BYTES:,} bytes."
            return await _refuse(send, 413, text)
        gone = asyncio.ensure_future(receive())
        bodies: list[Message] = [{"type": "http.request", "body": body}]

        async def read() -> Message:
            return bodies.pop() if bodies else await asyncio.shield(gone)

        work = asyncio.ensure_future(self.app(scope, read, send))
        try:
            await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                work.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await work
        finally:
            work.cancel()
            gone.cancel()
        return None


async def _refuse(send: Send, status: int, text: str) -> None:
    """Answers with an error, and closes the connection, whose rest nobody reads."""
    headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    body = json.dumps({"error": text}).encode()
    await send({"type": "http.response.body", "body": body})


@dataclass(eq=False)
class _Request:
    """Texts of one sender.

    Attributes:
        texts: all of them.
        waiting: the places of those whose turn has not come, the shortest last.
        answer: the translations.
        found: those that there are, by place.
    """

    texts: list[str]
    waiting: list[int]
    answer: asyncio.Future[list[str]]
    found: dict[int, str] = field(default_factory=dict)


@dataclass(eq=False)
class Turns:
    """Translates requests in turns: a turn takes a part of the first one that waits.

    What room it has left goes to the requests behind. Long texts leave none, and do not
    fit behind many short ones. A request that is cancelled gets no more turns.

    Args:
        translator: translates a list of texts, in a thread.
        max_batch: number of texts in a turn, at most.
        longest: bytes of a text that are read; more cost nothing.
        max_requests: number of requests in a turn, at most.
        max_wait: seconds that the first turn after a pause waits for requests.
    """

    translator: Callable[[list[str]], list[str]]
    max_batch: int
    longest: int
    max_requests: int
    max_wait: float

    def __post_init__(self) -> None:
        self._requests: list[_Request] = []
        self._turns = 0
        self._worker: asyncio.Task[None] | None = None

    async def translate(self, texts: list[str]) -> list[str]:
        """The translations of texts.

        Raises:
            Exception: whatever translating them raised.
        """
        if not texts:
            return []
        places = sorted(range(len(texts)), key=lambda i: self._size(texts[i]))
        answer = asyncio.get_running_loop().create_future()
        request = _Request(texts, places[::-1], answer)
        self._requests.append(request)
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._work())
        try:
            return await answer
        finally:
            self._leave(request)

    async def _work(self) -> None:
        """Takes turns while requests wait."""
        await asyncio.sleep(self.max_wait)
        while self._requests:
            turn = self._next_turn()
            texts = [request.texts[place] for request, place in turn]
            try:
                found = await asyncio.to_thread(self.translator, texts)
            except Exception as error:
                for request, _ in turn:
                    self._leave(request)
                    if not request.answer.done():
                        request.answer.set_exception(error)
                continue
            for (request, place), translation in zip(turn, found, strict=True):
                request.found[place] = translation
                is_whole = len(request.found) == len(request.texts)
                if is_whole and not request.answer.done():
                    places = range(len(request.texts))
                    request.answer.set_result([request.found[i] for i in places])

    def _next_turn(self) -> list[tuple[_Request, int]]:
        """The next texts, as requests and places; the requests go to the end."""
        turn: list[tuple[_Request, int]] = []
        size, served = 1, []
        self._turns += 1
        requests = self._requests
        if self._turns % SHARE:
            requests = sorted(requests, key=lambda request: bool(request.found))
        for request in requests:
            before = len(turn)
            while request.waiting and len(turn) < self.max_batch:
                place = request.waiting[-1]
                longest = max(size, self._size(request.texts[place]))
                if turn and (len(turn) + 1) * longest > TURN_BYTES:
                    break
                size = longest
                turn.append((request, request.waiting.pop()))
            if len(turn) > before:
                served.append(request)
            if len(served) == self.max_requests:
                break
        for request in served:
            self._leave(request)
            if request.waiting:
                self._requests.append(request)
        return turn

    def _leave(self, request: _Request) -> None:
        if request in self._requests:
            self._requests.remove(request)

    def _size(self, text: str) -> int:
        return min(len(text.encode("utf-8", "replace")), self.longest)
