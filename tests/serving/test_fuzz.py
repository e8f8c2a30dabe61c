"""The program that sends rubbish to servers notices the faults that it looks for."""

import random
import threading
from http.server import BaseHTTPRequestHandler
from http.server import ThreadingHTTPServer

import pytest

from tests.faults.serving import MAX_BATCH
from tests.faults.serving import random_texts
from tests.faults.serving_fuzz import SENTENCES
from tests.faults.serving_fuzz import InferWire
from tests.faults.serving_fuzz import fuzz
from tests.faults.serving_fuzz import requests
from tests.faults.serving_fuzz import rubbish

TEXTS = random_texts()


def is_utf8(string):
    return string.decode("utf-8", "replace").encode() == string


def test_rubbish_is_of_many_kinds():
    draw = random.Random(3)
    strings = [rubbish(draw) for _ in range(2000)]
    assert len(set(strings)) > 1700
    assert 0.3 < sum(map(is_utf8, strings)) / len(strings) < 0.9
    assert max(map(len, strings)) >= 65_536
    assert b"" in strings
    assert any(b"\0" in string for string in strings)


def test_requests_have_all_strings_and_sentences_at_their_places():
    sent = list(requests(TEXTS, strings=100, seed=1))
    assert sum(len(strings) for strings, _ in sent) == 100 + SENTENCES * len(sent)
    assert all(len(strings) <= MAX_BATCH for strings, _ in sent)
    for strings, places in sent:
        for text, place in places.items():
            assert strings[place] == text.encode()
    assert len({place for _, places in sent for place in places.values()}) > SENTENCES
    assert sent == list(requests(TEXTS, strings=100, seed=1))
    assert sent != list(requests(TEXTS, strings=100, seed=2))


def upper(strings):
    return [s.decode("utf-8", "replace").upper().encode() for s in strings]


@pytest.mark.parametrize("clients", [1, 8])
def test_all_strings_are_sent(clients):
    sent = []

    def translate(strings):
        sent.append(len(strings))
        return upper(strings)

    assert 0 <= fuzz(translate, TEXTS, strings=200, clients=clients) < 10
    batches = [count for count in sent if count > 1]
    assert sum(batches) == 200 + SENTENCES * len(batches)


def with_a_changed_neighbour(strings):
    """Sentences are translated as alone unless a string begins with NUL."""
    found = upper(strings)
    is_bad = any(string[:1] == b"\0" for string in strings)
    return [each + b"!" for each in found] if is_bad else found


def without_the_last(strings):
    return upper(strings)[: max(len(strings) - 1, 1)]


def of_bytes(strings):
    return strings


@pytest.mark.parametrize(
    "translate, error",
    [
        (with_a_changed_neighbour, AssertionError),
        (without_the_last, AssertionError),
        (of_bytes, UnicodeDecodeError),
    ],
)
def test_what_is_wrong_is_noticed(translate, error):
    with pytest.raises(error):
        fuzz(translate, TEXTS, strings=200, clients=4)


class Silent(BaseHTTPRequestHandler):
    """Answers when the test is over."""

    is_over = threading.Event()

    def do_POST(self):
        self.is_over.wait()


def test_a_server_that_does_not_answer_is_noticed():
    with ThreadingHTTPServer(("127.0.0.1", 0), Silent) as server:
        threading.Thread(target=server.serve_forever).start()
        host, port = server.server_address
        translate = InferWire(f"{host}:{port}", "toy", timeout=0.2)
        try:
            with pytest.raises(TimeoutError):
                fuzz(translate, TEXTS, strings=1)
        finally:
            Silent.is_over.set()
            server.shutdown()
