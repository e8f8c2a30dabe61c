"""Requests that share a translator, so that a large one does not make others wait."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from dataclasses import field

# Of the texts that are translated at once, padded to the longest: as many as one
# processor translates in about a second.
MAX_BYTES = 1 << 14
# Those that had a turn have every so many turns, as long as there are others.
SHARE = 4


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


class Turns:
    """Translates requests in turns: a turn takes a part of the first one that waits.

    What room it has left goes to the requests behind. Long texts leave none, and do not
    fit behind many short ones. A request that is cancelled gets no more turns.

    Args:
        translate: translates a list of texts, in a thread.
        max_batch: number of texts in a turn, at most.
        longest: bytes of a text that are read; more cost nothing.
        max_requests: number of requests in a turn, at most.
        max_wait: seconds that the first turn after a pause waits for requests.
    """

    def __init__(
        self,
        translate: Callable[[list[str]], list[str]],
        *,
        max_batch: int,
        longest: int,
        max_requests: int,
        max_wait: float,
    ) -> None:
        self._translate = translate
        self._max_batch = max_batch
        self._longest = longest
        self._max_requests = max_requests
        self._max_wait = max_wait
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
        await asyncio.sleep(self._max_wait)
        while self._requests:
            turn = self._next_turn()
            texts = [request.texts[place] for request, place in turn]
            try:
                found = await asyncio.to_thread(self._translate, texts)
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
            while request.waiting and len(turn) < self._max_batch:
                place = request.waiting[-1]
                longest = max(size, self._size(request.texts[place]))
                if turn and (len(turn) + 1) * longest > MAX_BYTES:
                    break
                size = longest
                turn.append((request, request.waiting.pop()))
            if len(turn) > before:
                served.append(request)
            if len(served) == self._max_requests:
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
        return min(len(text.encode("utf-8", "replace")), self._longest)
