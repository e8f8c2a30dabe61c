"""Requests that a server merges: a bad row among them fails alone."""

import shutil
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from keras_attnvariants.serving import Client
from keras_attnvariants.serving import Status
from keras_attnvariants.serving.client import InvalidRequestError
from tests.serving.merging import Merging
from tests.serving.merging import Request
from tests.serving.merging import batches
from tests.serving.service import service_of

CLIENTS = 12


def test_requests_are_put_together_and_taken_apart():
    merging = Merging(lambda x: [x.sum(axis=1), x[:, :1]], max_rows=5, seconds=0.2)
    requests = [np.full((rows, 2 + rows), rows) for rows in (1, 3, 2, 4, 1)]
    with ThreadPoolExecutor(5) as pool:
        answers = list(pool.map(merging, requests))
    for request, (sums, first) in zip(requests, answers, strict=True):
        rows = len(request)
        assert first.tolist() == [[rows]] * rows
        assert sums.shape == (rows,) and set(sums % rows) == {0}
    assert sum(merging.sizes) == 5 and max(merging.sizes) > 1
    sizes = [[r.rows for r in b] for b in batches([Request([r]) for r in requests], 5)]
    assert sizes == [[1, 3], [2], [4, 1]]


def test_a_failure_fails_for_all():
    def fail(x):
        raise ValueError("no")

    merging = Merging(fail, max_rows=9, seconds=0.1)
    with ThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(merging, np.ones(1)) for _ in range(2)]
    assert [type(future.exception()) for future in waiting] == [ValueError] * 2


@pytest.fixture(scope="module")
def ask(exported, tmp_path_factory):
    """Sends requests at once to a server that merges them."""
    folder = tmp_path_factory.mktemp("merging")
    shutil.copytree(exported["hc-sa"], folder / "1")
    with service_of(folder, merge=0.0) as service, ThreadPoolExecutor(CLIENTS) as pool:
        [version] = service.model.versions.values()

        def ask(signature, requests, together=1):
            """Answers or exceptions, and the requests in each batch.

            Requests are merged as soon as there are so many `together`.
            """
            version.merge, version.enough = 60.0, together
            for run in version.callables.values():
                run.seconds, run.enough = version.merge, together
                run.sizes.clear()
            with Client(service.grpc, "en-de", retries=0, max_batch=64) as client:
                sent = [pool.submit(client.predict, r, signature) for r in requests]
                answers = [future.exception() or future.result() for future in sent]
            [sizes] = [run.sizes for run in version.callables.values() if run.sizes]
            return answers, list(sizes)

        yield ask


def one_by_one(ask, signature, requests):
    """The answers to requests that come one after another."""
    return [ask(signature, [request])[0][0] for request in requests]


@pytest.mark.slow
def test_a_bad_row_fails_alone_among_merged_requests(ask, tokenizer, texts):
    rows = tokenizer.encode(texts[:CLIENTS])
    requests = [{"source_ids": [ids], "lengths": [len(ids)]} for ids in rows]
    alone = one_by_one(ask, "translate_ids", requests)
    bad = [dict(request) for request in requests]
    bad[3] = {"source_ids": [[4, 99999, 5]], "lengths": [3]}
    bad[7]["lengths"] = [-1]
    answers, sizes = ask("translate_ids", bad, CLIENTS)
    assert sizes == [CLIENTS]  # all of them together
    assert answers[3]["status"].tolist() == [Status.UNKNOWN_ID]
    assert answers[7]["status"].tolist() == [Status.WRONG_LENGTH]
    for number, (answer, expected) in enumerate(zip(answers, alone, strict=True)):
        if number in (3, 7):
            assert not answer["ids"].any() and answer["lengths"].tolist() == [0]
            continue
        assert answer["status"].tolist() == [Status.OK]
        [length] = expected["lengths"]
        assert answer["lengths"].tolist() == [length]
        assert answer["ids"][0, :length].tolist() == expected["ids"][0].tolist()


@pytest.mark.slow
def test_texts_of_many_clients_are_translated_as_alone(ask, texts):
    requests = [{"text": texts[n : n + 1 + n % 3]} for n in range(CLIENTS - 1)]
    alone = one_by_one(ask, "serving_default", requests)
    # One is refused before it is merged.
    requests.append({"text": texts[:34]})
    answers, sizes = ask("serving_default", requests, CLIENTS - 1)
    assert sizes == [CLIENTS - 1]
    assert isinstance(answers.pop(), InvalidRequestError)
    for answer, expected in zip(answers, alone, strict=True):
        assert answer["translations"].tolist() == expected["translations"].tolist()
