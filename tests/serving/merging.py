"""Requests that are answered together, as the batching of TensorFlow Serving does."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future

import numpy as np

Arrays = list[np.ndarray]


class Request:
    """The arrays of one request, and the future of its answer."""

    def __init__(self, arrays: Arrays):
        self.arrays = arrays
        self.rows = len(arrays[0])
        self.answer: Future[Arrays] = Future()


class Merging:
    """Runs a function for requests that come at about the same time.

    Arrays are put together along their first axis, up to `max_rows` rows; other axes
    are padded with the first element of the array. If the function fails, all requests
    of the batch do.

    Attributes:
        enough: requests that are run without waiting for more; 0 for any number.
        sizes: requests in each batch so far.
    """

    def __init__(self, run: Callable[..., Arrays], max_rows: int, seconds: float):
        self.run = run
        self.enough = 0
        self.max_rows = max_rows
        self.seconds = seconds
        self.lock = threading.Lock()
        self.waiting: list[Request] = []
        self.sizes: list[int] = []

    def __call__(self, *arrays: np.ndarray) -> Arrays:
        request = Request(list(arrays))
        with self.lock:
            self.waiting.append(request)
            leads = len(self.waiting) == 1
        if leads:
            deadline = time.monotonic() + self.seconds
            while time.monotonic() < deadline:
                if 0 < self.enough <= len(self.waiting):
                    break
                time.sleep(0.01)
            with self.lock:
                requests, self.waiting = self.waiting, []
            for batch in batches(requests, self.max_rows):
                self.answer(batch)
        return request.answer.result()

    def answer(self, batch: list[Request]) -> None:
        self.sizes.append(len(batch))
        columns = zip(*(request.arrays for request in batch), strict=True)
        try:
            found = self.run(*(joined(arrays) for arrays in columns))
        except Exception as error:
            for request in batch:
                request.answer.set_exception(error)
            return
        ends = np.cumsum([request.rows for request in batch])[:-1]
        parts = zip(*(np.split(array, ends) for array in found), strict=True)
        for request, part in zip(batch, parts, strict=True):
            request.answer.set_result(list(part))


def batches(requests: list[Request], max_rows: int) -> list[list[Request]]:
    """Requests in their order, in groups of at most `max_rows` rows."""
    found: list[list[Request]] = []
    rows = max_rows
    for request in requests:
        rows += request.rows
        if not found or rows > max_rows:
            found.append([])
            rows = request.rows
        found[-1].append(request)
    return found


def joined(arrays: tuple[np.ndarray, ...]) -> np.ndarray:
    """Arrays of one rank along the first axis, padded to the largest of each."""
    largest = np.max([array.shape for array in arrays], axis=0)
    padded = []
    for array in arrays:
        missing = largest - array.shape
        missing[0] = 0
        fill = array.flat[0] if array.size else 0
        padded.append(np.pad(array, [(0, n) for n in missing], constant_values=fill))
    return np.concatenate(padded)
