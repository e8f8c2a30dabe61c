"""Models by their folders, and the precisions in which they compute."""

import keras
import numpy as np
import pytest

from keras_attnvariants.cli import models
from keras_attnvariants.models.templates import with_policy


def test_a_run_gives_its_better_model(run_folder):
    model, tokenizer = models.load(run_folder)
    assert model.name == "averaged"
    assert tokenizer.vocabulary_size == 50


def test_a_model_without_a_tokenizer_is_refused(run_folder, tmp_path):
    from keras_attnvariants import save_model

    save_model(models.load(run_folder)[0], tmp_path / "model")
    with pytest.raises(ValueError, match="tokenizer.model.*Received: "):
        models.load(tmp_path / "model")


def test_precision_changes_how_it_is_computed_and_not_the_weights(run_folder):
    model, _ = models.load(run_folder)
    other, _ = models.load(run_folder, "bfloat16")
    assert model.dtype_policy.name == "float32"
    assert other.dtype_policy.name == "mixed_bfloat16"
    for mine, theirs in zip(model.weights, other.weights, strict=True):
        assert keras.ops.all(mine == theirs)


def test_integers_have_float32_around_them(run_folder, tmp_path):
    """The floats of a training would be rounded in different ways by processors."""
    from keras_attnvariants import save_model

    plain, tokenizer = models.load(run_folder)
    save_model(with_policy(plain, "mixed_bfloat16"), tmp_path / "half", tokenizer)
    whole, half = (models.load(x, "int8")[0] for x in (run_folder, tmp_path / "half"))
    ids = np.arange(4, 16).reshape(2, 6)
    inputs = {"source_ids": ids, "target_ids": ids}
    np.testing.assert_array_equal(half(inputs), whole(inputs))


def test_numbered_versions_are_a_saved_model(tmp_path):
    with pytest.raises(FileNotFoundError, match="saved_model.pb"):
        models.check_place("--saved-model", tmp_path, models.SAVED)
    (tmp_path / "3").mkdir()
    (tmp_path / "3" / "saved_model.pb").touch()
    models.check_place("--saved-model", tmp_path, models.SAVED)
    models.check_place("--saved-model", tmp_path / "3", models.SAVED)


def test_wide_beams_are_searched_for_fewer_sentences_at_once(run_folder):
    loaded = models.load(run_folder)
    sizes = (8, (1, 8, 32, 64)), (16, (1, 8, 32)), (64, (1, 8)), (1000, (1,))
    for beam_size, expected in sizes:
        translator = models.translator_of(*loaded, beam_size=beam_size)
        assert translator.batch_sizes == expected
