"""Archives of corpora without access to the web."""

from collections.abc import Callable
from collections.abc import Iterator
from functools import partial

import httpx
import pytest

from keras_attnvariants.data import sources
from keras_attnvariants.data.sources import download


@pytest.fixture
def put(cache, monkeypatch) -> Iterator[Callable]:
    """Puts archives where downloads are looked for; the web cannot be reached.

    Afterwards, the checks of the archives must be those registered.
    """
    corpora, digests = set(), set()

    def verify(path, checksum, *_):
        digests.add(checksum.split(":")[0] if checksum else "first use")

    def unreachable(request):
        raise httpx.ConnectError("no web in this test")

    monkeypatch.setattr(download, "verify", verify)
    transport = httpx.MockTransport(unreachable)
    monkeypatch.setattr(httpx, "Client", partial(httpx.Client, transport=transport))

    def put(corpus, **archives):
        corpora.add(corpus)
        folder = cache / "downloads" / corpus
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in archives.items():
            (folder / name).write_bytes(content)

    yield put
    assert digests <= {name for c in corpora for name in sources.get(c).digests}
