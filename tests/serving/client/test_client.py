"""The client against an exported model on a server with the real messages."""

import asyncio
import subprocess
import sys
import time

import numpy as np
import pytest

from keras_attnvariants.serving import Client
from keras_attnvariants.serving import SavedTranslator
from keras_attnvariants.serving import client as clients
from keras_attnvariants.serving.client import TensorSpec
from tests.serving.tools import LIMITS
from tests.serving.tools import SENTENCES

BATCH = LIMITS["max_batch"]
BOTH = pytest.mark.parametrize("protocol", ["grpc", "rest"])


def connect(service, protocol, **options):
    options = {"max_batch": BATCH, **options}
    return Client(service.address(protocol), "en-de", **options)


def test_it_starts_without_tensorflow():
    code = (
        "import sys\n"
        "from keras_attnvariants.serving import Client\n"
        "for address in ('localhost:1', 'http://localhost:1'):\n"
        "    Client(address, 'm').close()\n"
        "heavy = {'tensorflow', 'tensorflow_serving', 'keras', 'jax'}\n"
        "print(heavy & set(sys.modules) or 'none')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["none"]


@BOTH
def test_translations_equal_those_of_the_package_in_their_order(
    protocol, service, found, texts
):
    with connect(service, protocol) as client:
        # More than one request: the server accepts 33 sentences.
        assert client.translate(texts[:SENTENCES]) == found["hc-sa"][1]
        assert client.translate([]) == []
        assert client.translate(["", "\ud800"])[0] == ""


@BOTH
def test_methods_return_what_the_savedmodel_returns(protocol, service, exported, texts):
    texts = texts[:9]
    local = SavedTranslator(exported["hc-sa"])
    with connect(service, protocol) as client:
        assert [[each.text for each in best] for best in client.nbest(texts)] == [
            [each.text for each in best] for best in local.nbest(texts)
        ]
        pairs = zip(client.align(texts), local.align(texts), strict=True)
        for remote, here in pairs:
            assert remote.pieces == here.pieces
            np.testing.assert_allclose(remote.alignment, here.alignment, atol=1e-4)
        remote, here = (each.score(texts, texts) for each in (client, local))
        assert [each.pieces for each in remote] == [each.pieces for each in here]
        with pytest.raises(ValueError, match="`signature` must be one of"):
            client.sample(texts)


@BOTH
def test_coroutines_get_the_same(protocol, service, found, texts):
    async def translate():
        with connect(service, protocol, max_batch=7) as client:
            several = [
                asyncio.to_thread(client.translate, texts[i : i + 10])
                for i in range(0, 50, 10)
            ]
            return sum(await asyncio.gather(*several), [])

    assert asyncio.run(translate()) == found["hc-sa"][1]


@BOTH
def test_any_signature_can_be_asked(protocol, service, texts):
    texts = texts[:5]
    with connect(service, protocol, concurrency=1) as client:
        whole = client.predict({"text": texts}, "align")
        signature = client.signatures()["align"]
        assert signature.inputs == {"text": TensorSpec("string", (None,))}
        assert whole.keys() == signature.outputs.keys()
        for name, array in whole.items():
            spec = signature.outputs[name]
            assert array.dtype == (object if spec.dtype == "string" else spec.dtype)
            assert array.ndim == len(spec.shape)
        # Replies of other widths, put together.
        client.max_batch = 2
        parts = client.predict({"text": texts}, "align", ["translations", "pieces"])
        assert parts.keys() == {"translations", "pieces"}
        for name, array in parts.items():
            np.testing.assert_array_equal(array, whole[name])
        scores = client.predict({"source": texts, "target": texts}, "score")
        assert scores["log_probs"].shape == (5,)
        nothing = client.predict({"text": []}, "align")
        assert {len(array) for array in nothing.values()} == {0}


@BOTH
def test_versions_and_labels(protocol, service, texts):
    with connect(service, protocol) as client:
        expected = client.translate(texts[:2])
    for options in ({"version": 1}, {"label": "stable"}, {"label": "canary"}):
        with connect(service, protocol, **options) as client:
            assert client.translate(texts[:2]) == expected


@BOTH
@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"version": 9}, clients.ModelNotFoundError, "Servable not found"),
        ({"label": "new"}, clients.InvalidRequestError, "label: new"),
        ({"model": "de-en"}, clients.ModelNotFoundError, "Servable not found"),
    ],
)
def test_models_that_the_server_does_not_have(
    protocol, options, error, message, service
):
    options = {"model": "en-de", **options}
    with Client(service.address(protocol), **options) as client:
        with pytest.raises(error, match=message) as raised:
            client.translate(["a"])
    assert "\n" not in str(raised.value)


@BOTH
def test_too_many_sentences_are_refused_by_the_server(protocol, service):
    with Client(service.address(protocol), "en-de", max_batch=64) as client:
        message = rf"`text` .*at most {BATCH} sentences.*\[{BATCH + 1}\]"
        with pytest.raises(clients.InvalidRequestError, match=message) as raised:
            client.translate(["a"] * (BATCH + 1))
    assert "\n" not in str(raised.value)


@BOTH
def test_the_number_of_sentences_is_learned_from_the_server(
    protocol, service, found, texts
):
    with Client(service.address(protocol), "en-de") as client:
        assert client.max_batch == 64
        assert client.translate(texts[:SENTENCES]) == found["hc-sa"][1]
        assert client.max_batch == BATCH


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (({"text": ["a"]}, "best"), "`signature` must be one of 'align'"),
        (({"text": ["a"]}, "align", ["x"]), "`outputs` must be one of 'alignments'"),
        (({"text": [1]},), "`text` must hold strings"),
        (({"text": [["a"]]},), "`text` must have 1 axes"),
        (({"texts": ["a"]},), "takes `text`. Received: `texts`"),
        (
            ({"source_ids": [[1.5]], "lengths": [1]}, "translate_ids"),
            "`source_ids` must be int32. Received: float64",
        ),
    ],
)
def test_wrong_calls_are_refused_by_name(call, message, service):
    with connect(service, "grpc") as client:
        with pytest.raises(ValueError, match=message):
            client.predict(*call)


@BOTH
def test_messages_have_a_limit_in_both_directions(protocol, service, texts):
    with connect(service, protocol, max_message_bytes=30_000) as client:
        assert client.translate(["a"])
        with pytest.raises(clients.MessageTooLargeError, match="30,000"):
            client.translate(["a" * 40_000])
        with pytest.raises(clients.MessageTooLargeError):
            client.predict({"text": texts[:20]}, "align")


@BOTH
def test_a_missing_server_is_reported_after_a_few_tries(protocol):
    address = "localhost:1" if protocol == "grpc" else "http://localhost:1"
    with Client(address, "en-de", retries=1) as client:
        with pytest.raises(clients.ServerUnavailableError, match="localhost:1"):
            client.translate(["a"])


@BOTH
def test_the_first_failure_of_several_requests_is_reported(protocol, service):
    texts = ["a", "a" * 4000, "b" * 4000]
    options = {"max_batch": 1, "max_message_bytes": 3000}
    with connect(service, protocol, **options) as client:
        with pytest.raises(clients.MessageTooLargeError):
            client.translate(texts)


@BOTH
def test_a_deadline_is_kept(protocol, service, texts):
    with connect(service, protocol) as client:
        client.signatures()
        client.timeout = 1e-4
        with pytest.raises(clients.DeadlineError):
            client.translate(texts)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"version": 1, "label": "stable"}, "either `version` or `label`"),
        ({"max_batch": 0}, "`max_batch`"),
        ({"timeout": 0}, "`timeout`"),
        ({"retries": -1}, "`retries`"),
        ({"model": ""}, "`model`"),
        ({"address": "http://"}, "`address`"),
        ({"address": ""}, "`address`"),
        ({"address": "localhost:99999"}, "`address`.*localhost:99999"),
        ({"address": "http://localhost:99999"}, "`address`.*localhost:99999"),
        ({"address": "localhost:x"}, "`address`"),
        ({"address": "me:secret@localhost:1"}, "`address`.*: localhost:1$"),
        ({"address": "http://me:secret@localhost:0"}, "`address`.*: http://localhost"),
    ],
)
def test_wrong_arguments_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Client(**{"address": "localhost:1", "model": "en-de", **options})


def test_a_single_text_is_not_a_list():
    with Client("localhost:1", "en-de") as client:
        with pytest.raises(TypeError, match="`texts` must be a list"):
            client.translate("Good morning.")


@BOTH
def test_a_request_is_sent_again_as_often_as_it_may(protocol, monkeypatch):
    pauses = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    address = "localhost:1" if protocol == "grpc" else "http://localhost:1"
    with Client(address, "en-de", retries=2) as client:
        with pytest.raises(clients.ServerUnavailableError):
            client.signatures()
    assert len(pauses) == 2 and pauses[0] < pauses[1]
