"""Requests that share a translator."""

import asyncio
import threading

import pytest

from keras_attnvariants.serving.mlserver_requests import TURN_BYTES
from keras_attnvariants.serving.mlserver_requests import Turns

LONG = TURN_BYTES // 4


class Translator:
    """Translates to capitals when allowed, and records the texts of each call."""

    def __init__(self):
        self.given = []
        self.may = threading.Event()
        self.may.set()

    def __call__(self, texts):
        self.given.append(texts)
        assert self.may.wait(10)
        if "fail" in texts:
            raise RuntimeError("no translation")
        return [text.upper() for text in texts]


@pytest.fixture
def translator():
    return Translator()


def turns(translator, **changes):
    options = {"max_batch": 4, "longest": LONG, "max_wait": 0.01}
    return Turns(translator, **{**options, **changes})


def run(translator, *requests, **changes):
    """The answers to requests that come at the same time."""

    async def ask():
        shared = turns(translator, **changes)
        tasks = (shared.translate(texts) for texts in requests)
        return await asyncio.gather(*tasks, return_exceptions=True)

    return asyncio.run(ask())


def test_all_texts_are_translated_in_their_order(translator):
    texts = [f"{'a' * (7 * i % 5)}{i}" for i in range(11)]
    assert run(translator, texts, []) == [[text.upper() for text in texts], []]
    assert max(map(len, translator.given)) == 4


def test_requests_that_come_together_are_translated_together(translator):
    assert run(translator, ["a"], ["b"], ["c"]) == [["A"], ["B"], ["C"]]
    assert translator.given == [["a", "b", "c"]]


def test_others_come_between_the_parts_of_a_large_request(translator):
    run(translator, [str(i) for i in range(12)], ["a"], ["b"])
    assert translator.given[0] == ["0", "a", "b", "1"]
    assert list(map(len, translator.given)) == [4, 4, 4, 2]


def test_short_texts_do_not_wait_in_the_turn_of_long_ones(translator):
    long, short = "l" * LONG * 3, "s"
    run(translator, [long] * 8, [short] * 8, max_batch=64)
    assert [len(texts) for texts in translator.given] == [8, 4, 4]


def test_nothing_stays_of_requests_that_were_cancelled(translator):
    async def ask():
        shared = turns(translator)
        translator.may.clear()
        requests = [
            asyncio.ensure_future(shared.translate([f"{i}"] * 9)) for i in range(5)
        ]
        await asyncio.sleep(0.1)
        for request in requests:
            request.cancel()
        await asyncio.gather(*requests, return_exceptions=True)
        waiting = len(shared._queue)
        translator.may.set()
        return waiting, await shared.translate(["a"])

    assert asyncio.run(ask()) == (0, ["A"])


def test_a_large_request_is_neither_in_the_way_nor_forgotten(translator):
    came = {}

    async def ask():
        shared = turns(translator)

        async def client(name):
            for number in range(20):
                text = f"{name}{number}"
                came[text] = len(translator.given)
                await shared.translate([text])

        large = asyncio.create_task(shared.translate(["large"] * 200))
        await asyncio.gather(*map(client, "abc"))
        large.cancel()

    asyncio.run(ask())
    taken = {text: i for i, texts in enumerate(translator.given) for text in texts}
    # None waits for more than the turn that is under way.
    assert max(taken[text] - came[text] for text in came) <= 1
    texts = [text for texts in translator.given for text in texts]
    assert texts.count("large") > 60 / 3


def test_short_requests_do_not_wait_for_long_texts(translator):
    async def ask():
        shared = turns(translator, max_batch=64)
        large = asyncio.create_task(shared.translate(["l" * LONG] * 64))
        while not translator.given:
            await asyncio.sleep(0.01)
        came = len(translator.given)
        assert await shared.translate(["s"]) == ["S"]
        large.cancel()
        return came

    came = asyncio.run(ask())
    [taken] = [i for i, texts in enumerate(translator.given) if "s" in texts]
    assert taken - came <= 1


def test_a_failure_is_that_of_the_requests_in_its_turn(translator):
    found = run(translator, ["fail", *["longer"] * 8], ["e"], max_batch=1)
    assert isinstance(found[0], RuntimeError) and found[1] == ["E"]
    assert translator.given == [["fail"], ["e"]]


def test_clients_that_leave_get_no_more_turns(translator):
    async def ask():
        shared = turns(translator)
        translator.may.clear()
        task = asyncio.create_task(shared.translate(["a"] * 40))
        while not translator.given:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        translator.may.set()
        return await shared.translate(["b"])

    assert asyncio.run(ask()) == ["B"]
    assert translator.given == [["a"] * 4, ["b"]]
