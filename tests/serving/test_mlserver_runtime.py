"""An exported model in MLServer, as `kav serve` starts it.

MLServer asks for packages that are older than those of the other tests, so this file
runs in an environment of its own; docs/mlserver.md says how.
"""

import json
import random
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import pytest

from keras_attnvariants.serving import SavedTranslator
from tests.serving.tools import LIMITS

pytest.importorskip("mlserver", reason="needs an environment with MLServer")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


class Answer(NamedTuple):
    status: int
    value: dict


class Served:
    """The addresses of a server."""

    def __init__(self, port, grpc_port):
        self.grpc = f"127.0.0.1:{grpc_port}"
        self.http = f"http://127.0.0.1:{port}"

    def get(self, path) -> int:
        try:
            with urllib.request.urlopen(self.http + path) as response:  # noqa: S310
                return response.status
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return 0

    def post(self, body) -> Answer:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(  # noqa: S310
            f"{self.http}/v2/models/toy/infer",
            data,
            {"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request) as response:  # noqa: S310
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


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


@pytest.fixture(scope="module")
def served(exported):
    ports = free_ports(3)
    names = ("--port", "--grpc-port", "--metrics-port")
    options = [str(x) for pair in zip(names, ports, strict=True) for x in pair]
    call = [sys.executable, "-m", "keras_attnvariants", "serve"]
    process = subprocess.Popen(
        [*call, str(exported["hc-sa"].parent), "--name", "toy", *options]
    )
    server = Served(*ports[:2])
    try:
        # Alive before it is ready.
        wait(process, lambda: server.get("/v2/health/live") == 200)
        wait(process, lambda: server.get("/v2/models/toy/ready") == 200)
        yield server
    finally:
        process.terminate()
        assert process.wait(30) == 0


def wait(process, condition):
    end = time.monotonic() + 120
    while not condition():
        assert process.poll() is None and time.monotonic() < end
        time.sleep(0.2)


@pytest.fixture(scope="module")
def expected(exported, texts):
    """The translation of every text."""
    translations = SavedTranslator(exported["hc-sa"]).translate(texts[:200])
    return dict(zip(texts, translations, strict=False))


def test_health(served):
    assert served.get("/v2/health/ready") == 200
    assert served.get("/v2/models/other/ready") == 404


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


# Of a character that JSON writes in two parts.
HALF = json.dumps(request(["\ud83d"])).encode()


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[" * 100_000, b'{"inputs": 3}', b"\xff", b"null", HALF]
)
def test_what_is_no_request(served, body):
    assert 400 <= served.post(body).status < 500


def test_nobody_pays_for_a_neighbour(served, expected):
    """Right and wrong requests at once, which are batched if they may be."""
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
    draw = random.Random(7)
    neighbours = list(expected)

    def one(_):
        text = any_text(draw)
        neighbour = draw.choice(neighbours)
        found, same = served.translate([text, neighbour])
        return isinstance(found, str) and same == expected[neighbour]

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(one, range(200)))


def any_text(draw) -> str:
    """A text of any characters."""
    ranges = ((0, 0x20), (0x20, 0x250), (0x250, 0xD800), (0xE000, 0x11000))
    low, high = draw.choice([*ranges, (0x10000, 0x110000)])
    length = draw.choice((0, 1, 3, 30, 300))
    return "".join(chr(draw.randrange(low, high)) for _ in range(length))


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
    with grpc.insecure_channel(served.grpc) as channel:
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
