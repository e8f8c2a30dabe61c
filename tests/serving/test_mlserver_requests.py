"""The guard in front of MLServer, tested without MLServer."""

import asyncio
import json

import pytest

from keras_attnvariants.serving.mlserver_requests import MAX_BYTES
from keras_attnvariants.serving.mlserver_requests import Guard

WHOLE = [{"type": "http.request", "body": b"a"}]


async def echo(scope, receive, send):
    """Answers with the body."""
    message = await receive()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": message["body"]})


def ask(app, messages, headers=()):
    """Status and body for a request whose client leaves after these messages."""
    sent = []

    async def run():
        waiting = asyncio.Queue()
        for message in messages:
            waiting.put_nowait(message)

        async def send(message):
            sent.append(message)

        scope = {"type": "http", "headers": headers}
        await asyncio.wait_for(Guard(app, 1.0)(scope, waiting.get, send), 10)

    asyncio.run(run())
    if not sent:
        return None
    return sent[0]["status"], b"".join(each.get("body", b"") for each in sent)


def test_a_body_in_parts_comes_whole():
    first = {"type": "http.request", "body": b"a" * 7, "more_body": True}
    assert ask(echo, [first, *WHOLE]) == (200, b"a" * 8)


@pytest.mark.parametrize("parts", [1, 30])
def test_a_large_body_is_413(parts):
    part = {"type": "http.request", "body": b"a" * (MAX_BYTES // parts + 1)}
    status, body = ask(echo, [part | {"more_body": True}] * parts)
    assert status == 413 and "1,000,000 bytes" in json.loads(body)["error"]


def test_a_body_that_does_not_come_in_time_is_408():
    part = {"type": "http.request", "body": b"a", "more_body": True}
    status, body = ask(echo, [part])
    assert status == 408 and "within 1 seconds" in json.loads(body)["error"]


def test_a_compressed_body_is_415():
    status, body = ask(echo, WHOLE, [(b"content-encoding", b"gzip")])
    assert status == 415 and "compressed" in json.loads(body)["error"]


def test_work_ends_when_the_sender_leaves():
    ended = []

    async def slow(scope, receive, send):
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            ended.append(True)
            raise

    assert ask(slow, [*WHOLE, {"type": "http.disconnect"}]) is None
    assert ended == [True]


def test_who_leaves_before_the_end_of_the_body_is_not_answered():
    part = {"type": "http.request", "body": b"a", "more_body": True}
    assert ask(echo, [part, {"type": "http.disconnect"}]) is None


def test_errors_of_the_application_are_its_own():
    async def broken(scope, receive, send):
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        ask(broken, WHOLE)
