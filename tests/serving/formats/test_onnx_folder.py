"""ONNX folders: their searches against those of the package."""

import compileall
import errno
import importlib.util
import json
import os
import shutil
import subprocess
import sys

import keras
import numpy as np
import pytest

import keras_attnvariants as kav
from keras_attnvariants import attention
from keras_attnvariants.serving import export_onnx
from keras_attnvariants.serving.formats import onnx_folder
from keras_attnvariants.serving.precision import with_integers
from tests.serving.tools import as_batch
from tests.serving.tools import sharp_model
from tests.serving.tools import translate_here

pytest.importorskip("onnxruntime", reason="needs the extra `onnx`")
FILES = {
    *("encode.onnx", "initial_state.onnx", "step.onnx", "model.json"),
    *("tokenizer.model", "translate.py", "translate.js", "manifest.json"),
}

# Factors of initial weights, where 2 would enlarge rounding too much.
SHARPNESS = {"RecurrentCrossAttention": 1.3, "PhraseAttention": 1.3}


def exported_translator(model, tokenizer, folder, **options):
    """The translator in a folder that is exported."""
    export_onnx(model, tokenizer, folder, **options)
    place = importlib.util.spec_from_file_location("exported", folder / "translate.py")
    module = importlib.util.module_from_spec(place)
    place.loader.exec_module(module)
    return module.Translator(folder)


def check_search(translator, model, rows):
    """The translations of rows of ids are those of the package, and their scores."""
    found = kav.beam_search(model, as_batch(rows))
    best = (np.asarray(part)[:, 0] for part in (found.ids, found.lengths, found.scores))
    for row, ids, length, score in zip(rows, *best, strict=True):
        theirs, their_score = translator.search(row)
        assert theirs == ids[: length - 1].tolist()
        np.testing.assert_allclose(their_score, score, rtol=1e-5, atol=1e-4)


def random_rows(count, vocabulary_size):
    rng = np.random.default_rng(3)
    return [
        rng.integers(4, vocabulary_size, rng.integers(1, 12)).tolist()
        for _ in range(count)
    ]


def test_translations_of_an_exported_folder(models, tokenizer, texts, tmp_path):
    model, folder = models["hc-sa"], tmp_path / "model"
    translator = exported_translator(model, tokenizer, folder)
    assert {file.name for file in folder.iterdir() if file.is_file()} == FILES
    assert len(translator.step.get_inputs()) < len(model.weights)
    sources = [*texts[:6], ""]
    _, expected = translate_here(model, tokenizer, sources)
    assert [translator.translate(text) for text in sources] == expected
    check_search(translator, model, tokenizer.encode(texts[:6]))
    # As a program, which needs nothing of the package.
    command = [sys.executable, "-I", folder / "translate.py", *texts[:2]]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stdout.splitlines() == expected[:2]


@pytest.mark.slow
@pytest.mark.parametrize("name", attention.variants())
def test_searches_with_every_variant(name, tokenizer, tmp_path):
    """Examples of a variant are layers of one model, in each role they have."""
    variant, learned = attention.get(name), kav.DotProductAttention(num_heads=4)
    fitting = {role: variant.fitting(role)[:5] for role in attention.registry.ROLES}
    depth = max(map(len, fitting.values()))
    layers = {
        f"{role}_attention": [
            variant.cls(**variant.examples[number]) for number in numbers
        ]
        + [learned] * (depth - len(numbers))
        for role, numbers in fitting.items()
    }
    keras.utils.set_random_seed(1)
    short = {"max_length": 64, "search_settings": {"extra_length": 8}}
    model = kav.Transformer(100, depth, 16, 32, **layers, **short)
    sharpness = SHARPNESS.get(name, 2.0)
    for weight in model.weights:
        weight.assign(sharpness * weight)
    translator = exported_translator(model, tokenizer, tmp_path / "model")
    check_search(translator, model, random_rows(12, 100))


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["base", "lstm"])
def test_greedy_search_in_other_floats_and_integers(variant, tokenizer, tmp_path):
    model = sharp_model(variant, search_settings={"beam_size": 1})
    translator = exported_translator(model, tokenizer, tmp_path / "floats")
    check_search(translator, model, random_rows(10, 100))
    narrow = sharp_model(variant, dtype="mixed_bfloat16")
    exported_translator(narrow, tokenizer, tmp_path / "narrow", beam_size=1)
    model = with_integers(model, "float32")
    translator = exported_translator(model, tokenizer, tmp_path / "integers")
    assert len(translator.search([5, 6, 7])[0]) > 0


def test_a_folder_that_exists_is_kept(models, tokenizer, tmp_path):
    with pytest.raises(FileExistsError, match="must not exist"):
        export_onnx(models["hc-sa"], tokenizer, tmp_path)
    assert not list(tmp_path.iterdir())


def test_nothing_is_left_of_an_export_to_a_full_disk(
    models, tokenizer, tmp_path, monkeypatch
):
    def full(self, name, data):
        if name == "step.onnx":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(
        "keras_attnvariants.utils.folders.FolderWriter.write_bytes", full
    )
    with pytest.raises(OSError, match="No space left"):
        export_onnx(models["hc-sa"], tokenizer, tmp_path / "model", beam_size=1)
    assert not list(tmp_path.iterdir())


def test_a_missing_extra_is_named(models, tokenizer, tmp_path, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda n: None if n == "tf2onnx" else find(n)
    )
    with pytest.raises(ValueError, match=r"needs tf2onnx.*keras_attnvariants\[onnx\]"):
        export_onnx(models["hc-sa"], tokenizer, tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_options_of_the_search_are_written(models, tokenizer, tmp_path, monkeypatch):
    programs = shutil.copytree(onnx_folder.TEMPLATES, tmp_path / "programs")
    # As an installation does.
    compileall.compile_dir(programs, quiet=1)
    monkeypatch.setattr(onnx_folder, "TEMPLATES", programs)
    exported = export_onnx(
        models["hc-sa"], tokenizer, tmp_path / "model", beam_size=2, length_penalty=0.5
    )
    assert {path.name for path in exported.iterdir()} == FILES
    settings = json.loads((exported / "model.json").read_text())
    assert settings["beam_size"] == 2 and settings["length_penalty"] == 0.5


@pytest.mark.parametrize("limit", ["min_length", "no_repeat_ngram"])
def test_limits_that_the_searches_lack_are_refused(tokenizer, tmp_path, limit):
    model = sharp_model("hc-sa", search_settings={limit: 2})
    with pytest.raises(ValueError, match="`model` must have .* without `min_length`"):
        export_onnx(model, tokenizer, tmp_path / "onnx")
