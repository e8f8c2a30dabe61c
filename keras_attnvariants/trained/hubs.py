"""Models on Hugging Face and Kaggle, by the libraries of these hubs.

Only files with the names of a model folder are requested.
"""

import functools
import re
from pathlib import Path

from keras_attnvariants.data.sources.download import fetch_errors
from keras_attnvariants.data.sources.hugging_face import PART
from keras_attnvariants.trained.names import CARD
from keras_attnvariants.utils.caches import default_cache
from keras_attnvariants.utils.files import DamagedFolderError
from keras_attnvariants.utils.folders import MANIFEST
from keras_attnvariants.utils.folders import check_folder
from keras_attnvariants.utils.folders import read_manifest
from keras_attnvariants.utils.machine import check_extra

NEEDED = ("config.json", "model.weights.h5")
# What is downloaded and uploaded.
FILES = (MANIFEST, *NEEDED, "tokenizer.model", CARD, "README.md", "LICENSE")

ADDRESSES = {
    "hf": re.compile(rf"hf://({PART}/{PART})(?:@({PART}(?:/{PART})*))?", re.ASCII),
    "kaggle": re.compile(
        rf"kaggle://({PART}/{PART}/keras/{PART})(?:/(\d+))?", re.ASCII
    ),
}
LIBRARIES = {"hf": "huggingface_hub", "kaggle": "kagglehub"}


def parse(address: str) -> tuple[str, str, str | None]:
    """The hub of an address, the name of the model there, and its version if given.

    Raises:
        ValueError: it is not an address of a model, or the library is not installed.
    """
    for hub, pattern in ADDRESSES.items():
        if found := pattern.fullmatch(address):
            check_extra(f"A model at {hub}://", "hub", [LIBRARIES[hub]])
            return hub, found[1], found[2]
    raise ValueError(
        "The address of a model must be hf://user/name, hf://user/name@revision, "
        "kaggle://owner/model/keras/variation or this with /version. "
        f"Received: {address!r}"
    )


@functools.cache
def download(address: str) -> Path:
    """The folder of a model from a hub, downloaded unless it is in the cache.

    Files that are damaged are downloaded once more.

    Raises:
        ValueError: it is not an address of a model, or the library is not installed.
        FetchError: the hub cannot be reached, has no such model, or gives something
            else.
    """
    hub, name, version = parse(address)
    fetch = _from_hugging_face if hub == "hf" else _from_kaggle
    with fetch_errors(f"{address} cannot be downloaded"):
        folder = fetch(name, version)
        try:
            check_folder(folder, NEEDED)
        except DamagedFolderError:
            folder = fetch(name, version, force_download=True)
            check_folder(folder, NEEDED)
    return folder


def upload(folder: Path, address: str) -> str:
    """Uploads a model folder to a hub, where a model of this name gets a new version.

    Returns:
        The page of the model.

    Raises:
        ValueError: it is not an address of a model, or the library is not installed; or
            the folder is damaged.
        FetchError: the hub does not accept it.
    """
    hub, name, version = parse(address)
    check_folder(folder, NEEDED)
    with fetch_errors(f"{folder} cannot be uploaded to {address}"):
        if hub == "hf":
            from huggingface_hub import HfApi

            hugging_face = HfApi()
            page = hugging_face.create_repo(name, exist_ok=True)
            hugging_face.upload_folder(
                repo_id=name,
                folder_path=folder,
                revision=version,
                allow_patterns=list(FILES),
            )
            return str(page)
        import kagglehub

        others = {path.name for path in folder.iterdir()} - {*FILES}
        kagglehub.model_upload(name, str(folder), ignore_patterns=sorted(others))
        return f"https://www.kaggle.com/models/{name}"


def _from_hugging_face(
    name: str, version: str | None, force_download: bool = False
) -> Path:
    from huggingface_hub import snapshot_download

    # Not in the cache of the library, whose files are links.
    folder = default_cache() / "models" / "hf" / name / (version or "main")
    snapshot_download(
        name,
        revision=version,
        local_dir=folder,
        allow_patterns=list(FILES),
        force_download=force_download,
    )
    return folder


def _from_kaggle(name: str, version: str | None, force_download: bool = False) -> Path:
    from kagglehub import model_download

    def file(name: str, handle: str) -> Path:
        return Path(model_download(handle, name, force_download=force_download))

    # One by one: downloading all at once, the library trusts the hub's file names.
    folder = file(MANIFEST, f"{name}/{version}" if version else name).parent
    for listed in read_manifest(folder):
        if listed in FILES:
            # The folder is that of a version, so all files are of the same one.
            file(listed, f"{name}/{folder.name}")
    return folder
