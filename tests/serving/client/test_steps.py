"""Plans, and the two ways to run them."""

import asyncio

import pytest

from keras_attnvariants.serving.client.errors import DeadlineError
from keras_attnvariants.serving.client.errors import InvalidRequestError
from keras_attnvariants.serving.client.errors import ServerUnavailableError
from keras_attnvariants.serving.client.steps import Request
from keras_attnvariants.serving.client.steps import Retries
from keras_attnvariants.serving.client.steps import Together
from keras_attnvariants.serving.client.steps import drive
from keras_attnvariants.serving.client.steps import drive_async
from keras_attnvariants.serving.client.steps import exchange

REQUEST = Request("/x", b"?")
FAST = Retries(count=3, first=0.001)


class Server:
    """Answers after some failures."""

    def __init__(self, *errors):
        self.errors = list(errors)
        self.calls = 0

    def __call__(self, step):
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return step.request.body + b"!"


def run(plan, server, way):
    if way == "waiting":
        return drive(plan, server, 2)

    async def send(step):
        return server(step)

    return asyncio.run(drive_async(plan, send, 2))


BOTH = pytest.mark.parametrize("way", ["waiting", "async"])


@BOTH
def test_what_is_not_available_is_asked_again(way):
    server = Server(*[ServerUnavailableError("x: gone")] * 3)
    assert run(exchange(REQUEST, 60, FAST), server, way) == b"?!"
    assert server.calls == 4


@BOTH
@pytest.mark.parametrize(
    ("error", "calls"),
    [
        (ServerUnavailableError("x: gone"), 4),
        (InvalidRequestError("x: no"), 1),
        (DeadlineError("x: late"), 1),
    ],
)
def test_other_failures_are_told_at_once(error, calls, way):
    server = Server(*[error] * 9)
    with pytest.raises(type(error), match=str(error)):
        run(exchange(REQUEST, 60, FAST), server, way)
    assert server.calls == calls


def test_no_pause_outlasts_the_deadline():
    server = Server(*[ServerUnavailableError("x: gone")] * 9)
    with pytest.raises(DeadlineError, match="x: gone; tried 1 times in 1 seconds"):
        drive(exchange(REQUEST, 1, Retries(count=5, first=60, longest=60)), server, 1)


def test_pauses_double_up_to_the_longest_and_vary():
    retries = Retries(count=9, first=1.0, longest=4.0)
    drawn = [[retries.pause(number) for number in range(4)] for _ in range(50)]
    for number, longest in enumerate([1, 2, 4, 4]):
        pauses = [draw[number] for draw in drawn]
        assert longest / 2 <= min(pauses) < max(pauses) <= longest


@BOTH
def test_plans_run_together_and_the_first_failure_is_told(way):
    def plan(*answers):
        parts = [exchange(Request("/x", body), 60, FAST) for body in answers]
        return (yield Together(parts))

    assert run(plan(b"a", b"b", b"c"), Server(), way) == [b"a!", b"b!", b"c!"]
    with pytest.raises(InvalidRequestError):
        run(plan(b"a", b"b"), Server(InvalidRequestError("no")), way)
