import hashlib
import subprocess
from functools import partial

import httpx
import pytest

from keras_attnvariants.data import FetchError
from keras_attnvariants.data import load_corpus
from keras_attnvariants.data.sources import download as module

URL = "https://example.org/files/corpus.zip"
CONTENT = b"content" * 1000
SHA256 = hashlib.sha256(CONTENT).hexdigest()
GIT = "d059144513c1f913f338f49594a61b6bbc07ab85"


def download_file(
    url, into, downloads, checksum=None, name="corpus.zip", megabytes=500
):
    return module.download_file(url, into, downloads, checksum, name, megabytes)


@pytest.fixture
def folders(tmp_path):
    for name in ("into", "downloads"):
        (tmp_path / name).mkdir()
    return tmp_path / "into", tmp_path / "downloads"


@pytest.fixture
def web(monkeypatch):
    """The web has one file; its content and headers can be changed."""
    files = {URL: (CONTENT, {"Content-Length": str(len(CONTENT))})}

    def answer(request):
        if str(request.url) not in files:
            raise httpx.ConnectError("no such host")
        content, headers = files[str(request.url)]
        is_moved = "Location" in headers
        stream = httpx.ByteStream(content)
        return httpx.Response(302 if is_moved else 200, headers=headers, stream=stream)

    transport = httpx.MockTransport(answer)
    monkeypatch.setattr(httpx, "Client", partial(httpx.Client, transport=transport))
    return files


def pip(monkeypatch, content=None, error="ERROR: No matching distribution"):
    """Puts a pip in place that downloads `content`, or fails."""
    commands = []

    def run(command, **_):
        commands.append(command)
        folder = command[command.index("--dest") + 1]
        requirements = command[command.index("--requirement") + 1]
        with open(requirements) as file:
            commands.append(file.read())
        if content is None:
            return subprocess.CompletedProcess(command, 1, "", f"notice\n{error}\n")
        with open(f"{folder}/pack-1.0.whl", "wb") as file:
            file.write(content)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(module.subprocess, "run", run)
    return commands


def test_download(web, folders, capsys):
    path = download_file(URL, *folders, checksum=f"sha256:{SHA256}")
    assert path == folders[0] / "corpus.zip"
    assert path.read_bytes() == CONTENT
    assert capsys.readouterr().err == "  corpus.zip (0.0 MB)\n"


@pytest.mark.parametrize("length", [len(CONTENT) + 1, len(CONTENT) - 1])
def test_bodies_of_another_length_than_announced(web, folders, length):
    web[URL] = CONTENT, {"Content-Length": str(length)}
    with pytest.raises(FetchError, match=r"corpus\.zip cannot .* 7,000 of .* arrived"):
        download_file(URL, *folders)


@pytest.mark.parametrize("headers", [{"Content-Length": "5000000000"}, {}])
def test_files_that_are_too_large(web, folders, headers):
    web[URL] = CONTENT * 400, headers
    with pytest.raises(FetchError, match="has more than 1 MB"):
        download_file(URL, *folders, megabytes=1)
    assert (folders[0] / "corpus.zip").stat().st_size <= 1_000_000


def test_the_first_file_is_trusted_and_later_ones_must_be_the_same(
    web, folders, capsys
):
    for _ in range(2):
        path = download_file(URL, *folders)
        path.unlink()
    record = folders[1] / "SHA256SUMS"
    assert record.read_text() == f"{SHA256}  corpus.zip\n"
    assert "no checksum is published" in capsys.readouterr().err
    changed = bytearray(CONTENT)
    changed[5] ^= 1
    web[URL] = bytes(changed), {}
    with pytest.raises(FetchError, match=rf"not what it was at first.*{SHA256}.*remov"):
        download_file(URL, *folders)
    web["https://example.org/b.zip"] = b"b", {}
    download_file("https://example.org/b.zip", *folders, name="b.zip")
    assert len(record.read_text().splitlines()) == 2


@pytest.mark.parametrize("target", ["http://example.org/a", "ftp://example.org/a"])
def test_redirections_away_from_https(web, folders, target):
    web[URL] = b"", {"Location": target}
    with pytest.raises(FetchError, match=f"redirects to {target}, which is not https"):
        download_file(URL, *folders)


def test_redirections_to_https(web, folders):
    web["https://example.org/moved"] = b"", {"Location": URL}
    path = download_file("https://example.org/moved", *folders, f"sha256:{SHA256}")
    assert path.read_bytes() == CONTENT


def test_digests_of_git(web, folders):
    # The output of `git hash-object`.
    download_file(URL, *folders, checksum=f"git:{GIT}")
    with pytest.raises(FetchError, match=f"its git is {GIT}, expected 00"):
        download_file(URL, *folders, checksum="git:00")


def test_another_name(web, folders):
    assert download_file(URL, *folders, name="other.zip").name == "other.zip"


def test_files_that_exist_already(folders):
    (folders[1] / "corpus.zip").write_bytes(CONTENT)
    path = download_file(URL, *folders, checksum=f"sha256:{SHA256}")
    assert path == folders[1] / "corpus.zip"


def test_unreachable_addresses(web, folders):
    with pytest.raises(FetchError, match=r"a\.zip cannot be .* https://no\.org/a\.zip"):
        download_file("https://no.org/a.zip", *folders, name="a.zip")


def test_wrong_digests(web, folders):
    with pytest.raises(FetchError, match=rf"its sha256 is {SHA256}, expected 00\."):
        download_file(URL, *folders, checksum="sha256:00")


def test_only_https(folders):
    with pytest.raises(ValueError, match="`url` must be an https.*Received: 'file:"):
        download_file("file:///etc/passwd", *folders)


def test_packages_are_downloaded_with_their_digest(monkeypatch, folders):
    commands = pip(monkeypatch, CONTENT)
    path = download_file("pypi:pack==1.0", *folders, f"sha256:{SHA256}", "pack-1.0.whl")
    assert path.read_bytes() == CONTENT
    assert {"download", "--no-deps", "--require-hashes"} <= set(commands[0])
    assert commands[1] == f"pack==1.0 --hash=sha256:{SHA256}\n"
    assert [file.name for file in folders[0].iterdir()] == ["pack-1.0.whl"]


def test_packages_that_cannot_be_had(monkeypatch, folders):
    pip(monkeypatch)
    with pytest.raises(
        FetchError,
        match="pack-1.0.whl of the Python package pack==1.0: ERROR: No match",
    ):
        download_file("pypi:pack==1.0", *folders, f"sha256:{SHA256}", "pack-1.0.whl")


def test_packages_with_other_contents(monkeypatch, folders):
    pip(monkeypatch, b"other")
    with pytest.raises(FetchError, match="is not what pypi:pack==1.0 should be"):
        download_file("pypi:pack==1.0", *folders, f"sha256:{SHA256}", "pack-1.0.whl")


def test_packages_that_exist_already(monkeypatch, folders):
    commands = pip(monkeypatch)
    (folders[1] / "pack-1.0.whl").write_bytes(CONTENT)
    path = download_file("pypi:pack==1.0", *folders, f"sha256:{SHA256}", "pack-1.0.whl")
    assert path.parent == folders[1]
    assert not commands


@pytest.mark.parametrize("name", ["multi30k", "iwslt16", "iwslt17", "tatoeba", "wmt14"])
def test_advice_without_the_web(put, cache, name):
    advice = r"downloaded from https://.*: no web.*put it into .*downloads/.*, or give"
    with pytest.raises(FetchError, match=advice):
        load_corpus(name, "de", "en", cache_dir=cache)
