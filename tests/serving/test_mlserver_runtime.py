"""An exported model in MLServer, as `kav serve` starts it.

MLServer requires older packages than the other tests, so this file runs in an
environment of its own; docs/mlserver.md says how.
"""

import asyncio
import json
import random
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import pytest

from keras_attnvariants.backend.private import web_application
from keras_attnvariants.serving import SavedTranslator
from tests.faults.kav_serve import KavServe
from tests.faults.serving_fuzz import InferWire
from tests.faults.serving_fuzz import fuzz
from tests.serving.tools import LIMITS

pytest.importorskip("mlserver", reason="needs an environment with MLServer")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


class Answer(NamedTuple):
    status: int
    value: dict


class Served(KavServe):
    """A server that is asked over HTTP."""

    def post(self, body, timeout=60) -> Answer:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(  # noqa: S310
            f"http://{self.address}/v2/models/toy/infer",
            data,
            {"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=timeout) as response:  # noqa: S310
                return Answer(response.status, json.load(response))
        except urllib.error.HTTPError as error:
            return Answer(error.code, json.load(error))

    def translate(self, texts) -> list[str]:
        status, value = self.post(request(texts))
        assert status == 200, value
        [output] = value["outputs"]
        assert output["name"] == "translations"
        assert output["shape"][0] == len(texts)
        return output["data"]


def request(texts, **changes):
    text = {"name": "text", "datatype": "BYTES", "shape": [len(texts)], "data": texts}
    return {"inputs": [text | changes]}


@pytest.fixture(scope="module")
def served(exported):
    with Served(exported["hc-sa"].parent, "toy") as server:
        yield server


@pytest.fixture(scope="module")
def expected(exported, texts):
    """The translation of every text."""
    translations = SavedTranslator(exported["hc-sa"]).translate(texts[:200])
    return dict(zip(texts, translations, strict=False))


def test_the_application_of_a_server_is_found(tmp_path):
    """Fails first if a release of MLServer keeps the application elsewhere."""
    from fastapi import FastAPI
    from mlserver import MLServer
    from mlserver import Settings

    async def make():
        options = {"parallel_workers": 0, "metrics_endpoint": None}
        settings = Settings(model_repository_root=str(tmp_path), **options)
        return web_application(MLServer(settings))

    app = asyncio.run(make())
    assert isinstance(app, FastAPI)
    assert "/v2/docs" in {route.path for route in app.router.routes}


def test_health(served):
    assert served.status("/v2/health/ready") == 200
    assert served.status("/v2/models/other/ready") == 404


def test_translations(served, expected):
    texts = list(expected)[:20]
    assert served.translate(texts) == [expected[text] for text in texts]
    assert served.translate([""]) == [""]


def test_more_sentences_than_the_model_takes_at_once(served, expected):
    texts = list(expected)
    assert len(texts) > 2 * LIMITS["max_batch"]
    assert served.translate(texts) == list(expected.values())


WRONG = {
    "no inputs": ({"inputs": []}, "`text`"),
    "other name": (request(["a"], name="source"), "`text`"),
    "a name more": ({"inputs": 2 * request(["a"])["inputs"]}, "`text`"),
    "datatype": (request(["a"], datatype="INT32"), "`text`"),
    "shape": (request(["a"], shape=[2]), "`text`"),
    "negative shape": (request(["a"], shape=[-1]), "`text`"),
    "rank": (request(["a", "b"], shape=[1, 2]), "`text`"),
    "scalar": (request(["a"], shape=[]), "`text`"),
    "a string": (request(["a"], data="a"), "`text`"),
    "numbers": (request([1]), "`text`"),
    "nested": (request([["a"]]), "`text`"),
    "nothing": (request([]), "`text`"),
    "too many": (request(["a"] * 1025), "`text`"),
    "base64": (request(["YQ=="], parameters={"content_type": "base64"}), "`text`"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_request_is_400_and_names_the_input(served, name):
    body, phrase = WRONG[name]
    status, value = served.post(body)
    assert status == 400
    assert phrase in value["error"]
    assert "Traceback" not in value["error"] and len(value["error"]) < 400


# Half of a character that JSON writes in two parts.
HALF = json.dumps(request(["\ud83d"])).encode()


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[" * 100_000, b'{"inputs": 3}', b"\xff", b"null", HALF]
)
def test_anything_but_a_request_is_refused(served, body):
    status, value = served.post(body)
    assert status == 400
    assert "inference request" in value["error"] and len(value["error"]) <= 300


@pytest.mark.parametrize("name", ["a\r\nSet-Cookie: b", "a\n", "a b", "é", "a" * 10**6])
def test_ids_that_do_not_fit_into_a_header_are_refused(served, name):
    status, value = served.post({"id": name[:990_000], **request(["a"])})
    assert status == 400
    assert value["error"].startswith("`id` must") and len(value["error"]) < 300
    assert served.post({"id": "a-1", **request(["a"])}).value["id"] == "a-1"


def test_a_request_has_a_limit_of_bytes(served):
    status, value = served.post(request(["a" * 10_000] * 200))
    assert status == 413 and "1,000,000" in value["error"]


@pytest.mark.parametrize("page", ["/v2/docs", "/v2/models/toy/docs"])
def test_no_page_loads_programs_from_elsewhere(served, page):
    assert served.status(page) == 404


@pytest.fixture(scope="module")
def large(texts):
    """A request that takes seconds."""
    return request([" ".join(texts[i : i + 30])[:110] for i in range(1024)])


def test_a_request_has_a_deadline(exported, expected, large):
    with Served(exported["hc-sa"].parent, "toy", "--timeout", "0.3") as server:
        status, value = server.post(large)
        assert status == 504 and "0.3 seconds" in value["error"]
        text = next(iter(expected))
        assert server.translate([text]) == [expected[text]]


def test_work_ends_when_the_sender_is_gone(served, expected, large):
    def seconds(count):
        """For a short request, after so many large ones whose senders have left."""
        for _ in range(count):
            with pytest.raises(TimeoutError):
                served.post(large, timeout=0.2)
        begin = time.monotonic()
        text = next(iter(expected))
        assert served.translate([text]) == [expected[text]]
        return time.monotonic() - begin

    begin = time.monotonic()
    assert served.post(large).status == 200
    assert seconds(10) < time.monotonic() - begin


def test_nobody_pays_for_a_neighbour(served, expected):
    """Right and wrong requests at once, which are batched where possible."""
    draw = random.Random(6)
    texts = list(expected)
    wrong = [body for body, _ in WRONG.values()]

    def one(number):
        if number % 3 == 0:
            return served.post(draw.choice(wrong)).status == 400
        chosen = draw.choices(texts, k=draw.randrange(1, 5))
        return served.translate(chosen) == [expected[text] for text in chosen]

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(one, range(300)))


def test_any_text_is_translated_to_a_text(served, expected):
    translate = InferWire(served.address, "toy")
    fuzz(translate, list(expected), strings=200, seed=7, clients=8)


def test_grpc(served, expected):
    import grpc
    from mlserver.grpc import dataplane_pb2 as messages
    from mlserver.grpc.dataplane_pb2_grpc import GRPCInferenceServiceStub

    def tensor(shape, values):
        contents = messages.InferTensorContents(bytes_contents=values)
        return messages.ModelInferRequest.InferInputTensor(
            name="text", datatype="BYTES", shape=shape, contents=contents
        )

    text = next(iter(expected))
    values = [text.encode(), b"\xff\xfe"]
    with grpc.insecure_channel(served.grpc_address) as channel:
        stub = GRPCInferenceServiceStub(channel)
        right = messages.ModelInferRequest(
            model_name="toy", inputs=[tensor([2], values)]
        )
        [output] = stub.ModelInfer(right).outputs
        found = [value.decode() for value in output.contents.bytes_contents]
        assert found[0] == expected[text]
        wrong = messages.ModelInferRequest(
            model_name="toy", inputs=[tensor([3], values)]
        )
        with pytest.raises(grpc.RpcError) as error:
            stub.ModelInfer(wrong)
    assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert "`text`" in error.value.details()
