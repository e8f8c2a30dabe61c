"""The search in JavaScript, in Chromium with ONNX Runtime Web.

The folder `dist` of the npm package `onnxruntime-web` is named by the environment
variable ONNXRUNTIME_WEB: `npm pack onnxruntime-web` brings it.
"""

import functools
import http.server
import os
import threading
from pathlib import Path

import numpy as np
import pytest

import keras_attnvariants as kav
from keras_attnvariants.serving import export_onnx
from tests.chromium import chromium
from tests.serving.tools import as_batch

pytest.importorskip("onnxruntime", reason="needs the extra `onnx`")
if "ONNXRUNTIME_WEB" not in os.environ:
    pytest.skip("needs ONNX Runtime Web", allow_module_level=True)

SCRIPT = """
const done = arguments[arguments.length - 1];
(async () => {
  const ort = await import("/dist/ort.wasm.min.mjs");
  ort.env.wasm.numThreads = 1;
  const { load, search } = await import("/model/translate.js");
  const model = await load(ort, "/model");
  const found = [];
  for (const ids of arguments[0]) found.push(await search(model, ids));
  return found;
})().then(done, (error) => done(String(error)));
"""


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves files with the types that browsers ask of modules."""

    extensions_map = {".mjs": "text/javascript", ".js": "text/javascript"}

    def log_message(self, *args) -> None:
        """Writes nothing."""


@pytest.fixture
def site(tmp_path):
    """The address of a server of a folder."""
    handler = functools.partial(Handler, directory=tmp_path)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def browser():
    yield from chromium(800, 600)


@pytest.mark.slow
def test_translations_in_a_browser(browser, site, models, tokenizer, texts, tmp_path):
    model, rows = models["hc-sa"], [*tokenizer.encode(texts[:10]), []]
    export_onnx(model, tokenizer, tmp_path / "model")
    (tmp_path / "dist").symlink_to(Path(os.environ["ONNXRUNTIME_WEB"]).resolve())
    (tmp_path / "index.html").write_text("<!doctype html><title>A page</title>")
    browser.get(site)
    browser.set_script_timeout(300)
    found = browser.execute_async_script(SCRIPT, rows)
    assert isinstance(found, list), found
    expected = kav.beam_search(model, as_batch(rows))
    best = [
        np.asarray(x)[:, 0] for x in (expected.ids, expected.lengths, expected.scores)
    ]
    for theirs, ids, length, score in zip(found, *best, strict=True):
        assert theirs["ids"] == ids[: length - 1].tolist()
        np.testing.assert_allclose(theirs["score"], score, rtol=1e-5, atol=1e-4)
