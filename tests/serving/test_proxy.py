"""The proxy in front of the server, run by nginx with its JavaScript module."""

import http.client
import json
import shutil
import socket
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest

from keras_attnvariants.serving import Client
from keras_attnvariants.serving import client as clients
from keras_attnvariants.serving.folders import write_deployment
from tests.serving.tools import LIMITS

NGINX = Path(shutil.which("nginx") or "/usr/sbin/nginx")
MODULES = [
    folder
    for folder in (
        Path("/etc/nginx/modules"),
        Path(NGINX or "/usr/sbin/nginx").resolve().parents[1]
        / "lib"
        / "nginx"
        / "modules",
    )
    if (folder / "ngx_http_js_module.so").exists()
]
PREDICT = "/v1/models/en-de:predict"

pytestmark = pytest.mark.skipif(
    not (NGINX.exists() and MODULES), reason="needs nginx and its module njs"
)


@pytest.fixture(scope="module")
def proxy(service, tmp_path_factory):
    """Ports of a proxy in front of the server of the tests: gRPC and REST."""
    folder = tmp_path_factory.mktemp("proxy")
    versions = folder / "en-de"
    shutil.copytree(service.folder, versions)
    write_deployment(versions / "1", folder)
    ports = free_port(), free_port()
    text = (folder / "proxy" / "nginx.conf").read_text()
    for old, new in (
        ("serving:8500", service.grpc),
        ("serving:8501", service.rest.removeprefix("http://")),
        ("listen 8500", f"listen localhost:{ports[0]}"),
        ("listen 8501", f"listen localhost:{ports[1]}"),
        (" /tmp/", f" {folder}/"),
        ("modules/ngx", f"{MODULES[0]}/ngx"),
    ):
        assert old in text
        text = text.replace(old, new)
    (folder / "proxy" / "nginx.conf").write_text(text)
    process = subprocess.Popen(
        [NGINX, "-p", folder, "-c", folder / "proxy/nginx.conf", "-g", "daemon off;"]
    )
    try:
        wait_for(ports[1])
        yield ports
    finally:
        process.terminate()
        process.wait()


def free_port():
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        return probe.getsockname()[1]


def wait_for(port):
    end = time.monotonic() + 10
    while True:
        try:
            return socket.create_connection(("localhost", port)).close()
        except OSError:
            assert time.monotonic() < end
            time.sleep(0.05)


def post(proxy, path, body, headers=None, method="POST"):
    connection = http.client.HTTPConnection("localhost", proxy[1], timeout=60)
    try:
        connection.request(method, path, body, headers or {})
        reply = connection.getresponse()
        return reply.status, reply.read().decode()
    finally:
        connection.close()


@pytest.mark.parametrize("protocol", ["grpc", "rest"])
def test_translations_pass(protocol, proxy, found, texts):
    address = {"grpc": f"localhost:{proxy[0]}", "rest": f"http://localhost:{proxy[1]}"}
    batch = LIMITS["max_batch"]
    with Client(address[protocol], "en-de", max_batch=batch) as client:
        assert client.translate(texts[:5]) == found["hc-sa"][1][:5]


@pytest.mark.parametrize("size", [2_000_000, 100_000_000])
def test_large_requests_are_refused_by_size(size, proxy):
    options = {"max_message_bytes": 1 << 28, "retries": 0}
    for address in (f"localhost:{proxy[0]}", f"http://localhost:{proxy[1]}"):
        with Client(address, "en-de", **options) as client:
            with pytest.raises(clients.MessageTooLargeError, match="larger than"):
                client.translate(["a" * size])
            assert client.translate(["a"])


@pytest.mark.parametrize(
    "body", ["[" * 500_000, '{"a":' * 1000, '{"inputs": ' + "[" * 8 + "]" * 8 + "}"]
)
def test_deeply_nested_json_never_reaches_the_server(body, proxy):
    status, text = post(proxy, PREDICT, body)
    assert (status, "nested too deeply" in text) == (400, True)


def test_brackets_in_texts_do_not_nest(proxy):
    body = {"inputs": {"text": ["[[[[[[[[[[[[", '"{{{{{{{{{{{{', "\\"]}}
    status, text = post(proxy, PREDICT, json.dumps(body))
    assert status == 200
    assert len(json.loads(text)["outputs"]["translations"]) == 3


def test_only_what_clients_need_is_open(proxy):
    statuses = [
        post(proxy, PREDICT, b"x", {"Content-Encoding": "gzip"})[0],
        post(proxy, PREDICT, None, method="GET")[0],
        post(proxy, "/v1/models/en-de:classify", "{}")[0],
        post(proxy, "/monitoring/prometheus/metrics", None, method="GET")[0],
    ]
    assert statuses == [415, 403, 404, 404]
    method = "/tensorflow.serving.ModelService/HandleReloadConfigRequest"
    with grpc.insecure_channel(f"localhost:{proxy[0]}") as channel:
        with pytest.raises(grpc.RpcError) as error:
            channel.unary_unary(method)(b"", timeout=10)
    assert error.value.code() == grpc.StatusCode.UNIMPLEMENTED


def test_too_many_requests_are_unavailable_and_clients_come_back(proxy):
    address = f"localhost:{proxy[0]}"
    with Client(address, "en-de", retries=0) as client:
        client.signatures()
        with ThreadPoolExecutor(32) as pool:
            results = list(pool.map(lambda _: outcome(client), range(600)))
    assert set(results) == {"answered", "ServerUnavailableError"}
    with Client(address, "en-de") as patient:
        assert patient.translate(["a"])


def outcome(client):
    try:
        client._ask(client._server.signatures)  # a small request, not remembered
    except clients.ServingError as error:
        return type(error).__name__
    return "answered"
