"""Archives without the web."""

from collections.abc import Callable

import pytest

from keras_attnvariants.data.sources import download


@pytest.fixture
def put(cache, monkeypatch) -> Callable:
    """Puts archives where downloads are looked for; the web cannot be reached."""
    monkeypatch.setattr(download, "verify", lambda *_: None)

    def unreachable(*_, **__):
        raise OSError("no web in this test")

    monkeypatch.setattr(download.urllib.request, "urlopen", unreachable)

    def put(corpus, **archives):
        folder = cache / "downloads" / corpus
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in archives.items():
            (folder / name).write_bytes(content)

    return put
