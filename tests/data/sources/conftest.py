"""Archives without the web."""

from collections.abc import Callable
from collections.abc import Iterator

import pytest

from keras_attnvariants.data import registry
from keras_attnvariants.data.sources import download


@pytest.fixture
def put(cache, monkeypatch) -> Iterator[Callable]:
    """Puts archives where downloads are looked for; the web cannot be reached.

    In the end, the ways in which archives were checked must be those registered.
    """
    corpora, digests = set(), set()

    def verify(path, checksum, *_):
        digests.add(checksum.split(":")[0] if checksum else "first use")

    def unreachable(*_, **__):
        raise OSError("no web in this test")

    monkeypatch.setattr(download, "verify", verify)
    monkeypatch.setattr(download, "open_url", unreachable)

    def put(corpus, **archives):
        corpora.add(corpus)
        folder = cache / "downloads" / corpus
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in archives.items():
            (folder / name).write_bytes(content)

    yield put
    assert digests <= {name for c in corpora for name in registry.get(c).digests}
