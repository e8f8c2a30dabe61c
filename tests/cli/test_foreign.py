"""`kav import`: foreign models as folders on which everything works."""

import json

import numpy as np
import pytest

import keras_attnvariants
from tests.cli.conftest import check_error
from tests.cli.conftest import stdout
from tests.foreign import folders

SOURCE = folders.subwords(folders.ENGLISH)
TARGET = folders.subwords(folders.GERMAN)
TOKENS = folders.numbered(folders.pieces(SOURCE, TARGET))
TEXT = "the old mouse sees a horse"


@pytest.fixture
def theirs(tmp_path):
    """A folder of Marian's, with a page and a licence."""
    folder = tmp_path / "theirs"
    weights = folders.arrays(len(TOKENS))
    files, swish = {"a.vocab.yml": TOKENS}, {"transformer-ffn-activation": "swish"}
    folders.write_marian(folder, weights, files, (SOURCE, TARGET), **swish)
    (folder / "README.md").write_text("license: CC BY 4.0\n")
    return folder


@pytest.fixture
def ours(kav, theirs, tmp_path):
    """The imported model."""
    output = stdout(kav("import", "marian", theirs, "--output", tmp_path / "ours"))
    assert output.splitlines()[-1].startswith("Next: kav export --model ")
    return tmp_path / "ours"


@pytest.fixture
def corpus(tmp_path):
    folder = tmp_path / "corpus"
    folder.mkdir()
    for split in ("train", "validation", "test"):
        for code, text in (("en", folders.ENGLISH), ("de", folders.GERMAN)):
            (folder / f"{split}.{code}").write_text(f"{text}\n", "utf-8")
    return folder


def test_an_imported_model_translates(kav, ours):
    assert (ours / "README.md").read_text() == "license: CC BY 4.0\n"
    model, tokenizer = keras_attnvariants.load_model(ours)
    expected = keras_attnvariants.Translator(model, tokenizer, xla=False)
    output = stdout(kav("translate", "--model", ours, TEXT))
    assert output.rstrip("\n") == expected.translate([TEXT])[0].rstrip()


@pytest.mark.slow
def test_an_imported_model_is_served(kav, ours, tmp_path):
    from keras_attnvariants.serving import verify
    from keras_attnvariants.serving.saved import SavedTranslator

    model, tokenizer = keras_attnvariants.load_model(ours)
    place = tmp_path / "saved"
    options = ("--precision", "float32")
    stdout(kav("export", "--model", ours, "--output", place, *options))
    verify(place / "1")
    saved, here = (
        SavedTranslator(place),
        keras_attnvariants.Translator(model, tokenizer, xla=False),
    )
    texts = [TEXT, "seven zebras", ""]
    assert saved.translate(texts) == here.translate(texts)
    targets = ["der alte Mann", "Maus", "x"]
    scored, (expected, _) = (one.score(texts[:2], targets[:2]) for one in (saved, here))
    found = [one.log_prob for one in scored]
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    [aligned] = saved.align([TEXT])
    assert list(aligned.source_pieces) == tokenizer.split([TEXT])[0]


@pytest.mark.slow
def test_an_imported_model_is_trained_on(kav, ours, corpus, tmp_path):
    data = ("--data", corpus, "--source", "en", "--target", "de")
    few = ("--steps", "4", "--learning-rate", "1e-3", "--warmup-steps", "1")
    options = (*data, *few, "--precision", "float32")
    run, further = tmp_path / "run", tmp_path / "further"
    stdout(kav("train", "--run", run, "--from", ours, *options))
    before, after = (
        keras_attnvariants.load_model(place).model for place in (ours, run / "best")
    )
    config = before.get_config() | {"name": after.name}
    assert after.get_config() == config
    changed = [
        not np.array_equal(x, y)
        for x, y in zip(before.weights, after.weights, strict=True)
    ]
    assert all(changed)
    # Once more from the run, which has no preset either, with few weights.
    lora = ("--lora", "2", "--freeze", "embeddings")
    output = stdout(kav("train", "--run", further, "--from", run, *lora, *options))
    assert "embeddings" in output
    settings = json.loads((further / "config.json").read_text())
    assert settings["training"]["data"]["keep_architecture"]


@pytest.mark.parametrize(
    ("form", "options", "phrases"),
    [
        ("hf", [], ["config.json", "missing"]),
        ("hf", ["--vocabulary", "a.yml"], ["are for marian"]),
        ("marian", ["--weights", "none.npz"], ["none.npz"]),
        ("marian", ["--vocabulary", "none.yml"], ["none.yml"]),
    ],
)
def test_what_cannot_be_imported_leaves_nothing(
    kav, theirs, tmp_path, form, options, phrases
):
    result = kav("import", form, theirs, "--output", tmp_path / "ours", *options)
    check_error(result, *phrases)
    assert not (tmp_path / "ours").exists()


def test_a_damaged_model_leaves_nothing(kav, theirs, tmp_path):
    data = (theirs / "model.npz").read_bytes()
    (theirs / "model.npz").write_bytes(data[: len(data) // 2])
    result = kav("import", "marian", theirs, "--output", tmp_path / "ours")
    check_error(result, "model.npz is not a file of arrays")
    assert not (tmp_path / "ours").exists()


def test_an_output_that_exists(kav, theirs):
    result = kav("import", "marian", theirs, "--output", theirs)
    check_error(result, "`--output` must not exist")


def test_a_folder_that_does_not_exist(kav, tmp_path):
    nothing = tmp_path / "nothing"
    result = kav("import", "hf", nothing, "--output", tmp_path / "ours")
    check_error(result, "FOLDER must be a folder")
