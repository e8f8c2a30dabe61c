"""Protection of MLServer's HTTP from requests that MLServer itself lets in."""

import asyncio
import contextlib
import json
from collections.abc import Awaitable
from collections.abc import Callable
from typing import Any
from typing import TypeAlias

# Bytes of a request, over HTTP and gRPC.
MAX_BYTES = 1_000_000

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


class Guard:
    """Reads a request, which has limits, and ends its work if the sender leaves.

    Args:
        app: an application by the ASGI.
        timeout: seconds within which a request must have come.
    """

    def __init__(
        self,
        app: Callable[[Message, Receive, Send], Awaitable[None]],
        timeout: float,
    ) -> None:
        self.app = app
        self.timeout = timeout

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
