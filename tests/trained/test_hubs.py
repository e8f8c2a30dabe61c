"""Models on hubs, asked for over HTTP on this machine."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

import keras_attnvariants as kav
from keras_attnvariants.trained import hubs
from tests.trained.stand_ins import HuggingFace
from tests.trained.stand_ins import Kaggle
from tests.trained.stand_ins import serving

ADDRESS = {"hf": "hf://user/toy", "kaggle": "kaggle://user/toy/keras/small"}
# The libraries read their settings when they are imported.
PROGRAM = """
import sys
from pathlib import Path
from keras_attnvariants.trained import hubs
if len(sys.argv) > 3:
    from kagglesdk import kaggle_env
    kaggle_env._env_to_endpoint[kaggle_env.KaggleEnv.LOCAL] = sys.argv[3]
*folder, address = sys.argv[1].split(" ")
try:
    for _ in range(int(sys.argv[2])):
        work = hubs.upload if folder else hubs.download
        found = work(*map(Path, folder), address)
        hubs.download.cache_clear()
    print(found)
except Exception as error:
    print(f"{type(error).__name__}: {error}")
"""


@pytest.fixture(scope="module")
def folder(run_folder, tmp_path_factory):
    """A model folder."""
    model, tokenizer = kav.load_model(run_folder / "best")
    path = tmp_path_factory.mktemp("packed") / "model"
    beside = {"LICENSE": b"CC BY 2.0"}
    return kav.save_model(model, path, tokenizer, packed=True, extra_files=beside)


@pytest.fixture(params=["hf", "kaggle"])
def hub(request, folder):
    """A hub that has the model, and files that nobody asked for."""
    kind = HuggingFace if request.param == "hf" else Kaggle
    with serving(kind) as hub:
        files = {path.name: path.read_bytes() for path in folder.iterdir()}
        others = {"code.py": b"raise SystemExit", "../outside": b"x"}
        hub.models["user/toy" if request.param == "hf" else "toy"] = files | others
        hub.address = ADDRESS[request.param]
        hub.files = next(iter(hub.models.values()))
        yield hub


def run(hub, cache, what: str, times: int = 1) -> str:
    """The output of a program that downloads or uploads."""
    variables = {
        "HF_ENDPOINT": hub.url,
        "HF_TOKEN": "hf_none",
        "HF_HUB_DISABLE_XET": "1",
        "HF_HOME": str(cache / "home"),
        "KAV_CACHE": str(cache / "kav"),
        "KAGGLEHUB_CACHE": str(cache / "kaggle"),
        "KAGGLE_API_ENVIRONMENT": "LOCALHOST",
        "KAGGLE_USERNAME": "user",
        "KAGGLE_KEY": "key",
    }
    more = [hub.url] if "kaggle:" in what else []
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, what, str(times), *more],
        capture_output=True,
        text=True,
        env=os.environ | variables,
    )
    assert done.returncode == 0, done.stderr
    [line] = done.stdout.splitlines()
    return line


def test_a_model_is_downloaded_once_and_loaded(hub, folder, tmp_path):
    found = Path(run(hub, tmp_path, hub.address, times=2))
    names = {path.name for path in found.iterdir() if path.is_file()}
    assert names == {path.name for path in folder.iterdir()}
    assert all(map(lambda name: not (found / name).is_symlink(), names))
    assert sum("outside" in path.name for path in tmp_path.rglob("*")) == 0
    asked = [line for line in hub.asked if line.startswith(("GET /user", "POST"))]
    assert len(asked) <= len(names) + 2  # and the version
    mine, theirs = kav.load_model(found), kav.load_model(folder)
    assert mine.tokenizer.model_bytes == theirs.tokenizer.model_bytes
    assert mine.model.count_params() == theirs.model.count_params()


def test_a_damaged_file_in_the_cache_is_downloaded_again(hub, tmp_path):
    found = Path(run(hub, tmp_path, hub.address))
    weights = (found / "model.weights.h5").read_bytes()
    (found / "model.weights.h5").write_bytes(weights[:-8] + b"damaged!")
    assert run(hub, tmp_path, hub.address) == str(found)
    assert (found / "model.weights.h5").read_bytes() == weights


def test_an_unknown_model_is_told(hub, tmp_path):
    line = run(hub, tmp_path, hub.address.replace("toy", "none"))
    assert line.startswith("FetchError: ")
    assert "none" in line and "cannot be downloaded: " in line and "404" in line


def test_an_unknown_version_is_told(hub, tmp_path):
    version = "@other" if hub.address.startswith("hf") else "/7"
    line = run(hub, tmp_path, hub.address + version)
    assert line.startswith(f"FetchError: {hub.address}{version} cannot be downloaded: ")
    assert "404" in line


@pytest.mark.parametrize("name", ["model.weights.h5", "manifest.json", "config.json"])
def test_another_file_than_was_asked_for_is_refused(hub, tmp_path, name):
    hub.files[name] = b"<html>Please log in.</html>"
    line = run(hub, tmp_path, hub.address)
    assert line.startswith(f"FetchError: {hub.address} cannot be downloaded: ")
    assert f"DamagedFolderError: {name} is " in line


def test_a_manifest_that_names_other_files_is_refused(hub, tmp_path):
    hub.files["manifest.json"] = b'{"../outside": {"size": 1, "sha256": "0"}}'
    line = run(hub, tmp_path, hub.address)
    assert "DamagedFolderError: manifest.json must list 'config.json'" in line
    assert not [path for path in tmp_path.rglob("*") if path.name == "outside"]


def test_a_page_in_the_place_of_all_answers_is_refused(hub, tmp_path):
    hub.page = b"<html>Please log in.</html>"
    line = run(hub, tmp_path, hub.address)
    assert line.startswith(f"FetchError: {hub.address} cannot be downloaded: ")


def test_a_model_is_uploaded(hub, folder, tmp_path):
    target = hub.address.replace("toy", "new")
    page = run(hub, tmp_path, f"{folder} {target}")
    assert page.endswith(("user/new", "user/new/keras/small"))
    stored = hub.models["uploaded" if "kaggle" in target else "user/new"]
    assert stored == {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize(
    "address",
    [
        "hf://toy",
        "hf://user/toy/other",
        "hf://../toy",
        "hf://user/..",
        "hf://user/a..b",
        "hf://user/toy@",
        "hf://user/toy@../main",
        "hf://user/toy\n",
        "hf:/user/toy",
        "kaggle://user/toy",
        "kaggle://user/toy/pytorch/small",
        "kaggle://user/toy/keras/..",
        "kaggle://user/toy/keras/small/two",
        "https://example.org/toy",
    ],
)
def test_other_addresses_are_refused(address):
    with pytest.raises(ValueError, match="must be hf://user/name") as error:
        hubs.download(address)
    assert str(error.value).endswith(f"Received: {address!r}")


@pytest.mark.parametrize("address", ADDRESS.values())
def test_a_missing_library_is_named_with_its_extra(address, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    library = "kagglehub" if "kaggle" in address else "huggingface_hub"
    with pytest.raises(ValueError, match=rf"needs {library}, .*variants\[hub\]"):
        hubs.download(address)
