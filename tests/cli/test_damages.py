"""Folders that a command refuses and `kav doctor` calls damaged: one list for both."""

import gzip
import json
import shutil

import pytest

from keras_attnvariants.utils.folders import check_folder
from keras_attnvariants.utils.folders import new_folder
from tests.cli.conftest import check_error
from tests.cli.conftest import stdout

pytestmark = pytest.mark.filterwarnings("ignore:__array__:DeprecationWarning")


def write(name, data):
    """Damage that writes other content to a file."""

    def damage(folder):
        (folder / name).write_bytes(data)

    return damage


def change(name, function):
    """Damage that changes the content of a file by a function."""

    def damage(folder):
        path = folder / name
        path.write_bytes(function(path.read_bytes()))

    return damage


def remove(name):
    """Damage that removes a file or folder."""

    def damage(folder):
        path = folder / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()

    return damage


def move_and_link(name):
    """Damage that moves a file elsewhere and leaves a link to it."""

    def damage(folder):
        elsewhere = folder.parent / "elsewhere"
        (folder / name).rename(elsewhere)
        (folder / name).symlink_to(elsewhere)

    return damage


def compress_too(folder):
    (folder / "train.xx.gz").write_bytes(gzip.compress(b"a\n" * 600))


def rename_class(folder):
    """Names a class that does not exist, in a model whose manifest matches."""
    config = json.loads((folder / "config.json").read_text())
    config |= {"class_name": "Nowhere", "registered_name": "nowhere>Nowhere"}
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    files["config.json"] = json.dumps(config).encode()
    del files["manifest.json"]
    with new_folder(folder) as writer:
        for name, data in files.items():
            writer.write_bytes(name, data)
    check_folder(folder, ())


CORPORA = [
    compress_too,
    write("valid.xx", b"a\n" * 20),
    write("train.xx", b"\n" * 600),
    write("train.xx", b""),
    change("train.xx", lambda data: data.replace(b"\n", b"\r")),
    change("train.xx", lambda data: data[:-40]),
    change("train.yy", lambda data: data.decode().encode("utf-16")),
    write("train.xx", b"\x1f\x8b broken"),
    write("train.yy", bytes(range(256)) * 100),
]
MODELS = [
    *[remove(name) for name in ("config.json", "model.weights.h5", "tokenizer.model")],
    *[
        change(name, lambda data: data[:-7])
        for name in ("config.json", "manifest.json")
    ],
    change("model.weights.h5", lambda data: data[:-7]),
    change("tokenizer.model", lambda data: data[:-7]),
    write("manifest.json", b"{}"),
    move_and_link("config.json"),
    rename_class,
]
RUNS = [
    remove("averaged"),
    change("log.jsonl", lambda data: b"nonsense\n" + data),
    change("averaged/model.weights.h5", lambda data: data[:-7]),
]
SAVED = [
    remove("saved_model.pb"),
    write("variables/more", b"unlisted"),
    write("assets.extra/model_info.json", b"{}"),
    change("saved_model.pb", lambda data: data[:-7]),
    change("manifest.json", lambda data: data[:-7]),
]


@pytest.mark.parametrize("damage", CORPORA)
def test_corpora(damage, kav, corpus_folder, tmp_path):
    folder = shutil.copytree(corpus_folder, tmp_path / "corpus")
    languages = ("--source", "xx", "--target", "yy")
    assert kav("doctor", folder, *languages).exit_code == 0
    damage(folder)
    check_error(kav("train", "--data", folder, *languages, "--run", tmp_path / "run"))
    result = kav("doctor", folder, *languages)
    assert (result.exit_code, result.stderr) == (1, "")


@pytest.mark.parametrize(
    "damage, part",
    [*((damage, "best") for damage in MODELS), *((damage, "") for damage in RUNS)],
)
def test_models_and_runs(damage, part, kav, run_folder, tmp_path):
    folder = shutil.copytree(run_folder / part, tmp_path / "copy")
    assert kav("doctor", folder).exit_code == 0
    damage(folder)
    check_error(kav("translate", "--model", folder, "be la"))
    result = kav("doctor", folder)
    assert (result.exit_code, result.stderr) == (1, "")


@pytest.fixture(scope="module")
def exported(run_folder, tmp_path_factory):
    import keras_attnvariants as kav

    loaded = kav.load_model(run_folder / "best")
    folder = tmp_path_factory.mktemp("exported")
    return kav.serving.export(*loaded, folder, precision="float32", beam_size=1)


@pytest.mark.parametrize("damage", SAVED)
def test_saved_models(damage, kav, exported, tmp_path):
    folder = shutil.copytree(exported, tmp_path / "1")
    assert kav("doctor", folder).exit_code == 0
    damage(folder)
    check_error(kav("translate", "--saved-model", folder, "be la"))
    result = kav("doctor", folder)
    assert (result.exit_code, result.stderr) == (1, "")
    assert "a SavedModel" in result.stdout and "export the model again" in result.stdout


def test_the_header_of_a_table_names_the_languages(kav, tmp_path):
    table = tmp_path / "pairs of 2.tsv"
    table.write_text("xx\tyy\n" + "".join(f"{n}\t{n}\n" for n in range(300)))
    languages = ("--source", "xx", "--target", "yy")
    assert "train: 288" in stdout(kav("doctor", table, *languages))
    wrong = ("--source", "xx", "--target", "zz", "--run", tmp_path / "run")
    check_error(kav("train", "--data", table, *wrong), "names the languages xx and yy")
    table.write_text(table.read_text().replace("yy", "xx"))
    assert kav("doctor", table, *languages).exit_code == 1
