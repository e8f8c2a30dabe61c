"""Two text files become a model folder that translates."""

import pytest

import keras_attnvariants as kav

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:__array__:DeprecationWarning"),
]


def test_two_files(recipe, corpus_folder, tmp_path):
    files = [corpus_folder / f"train.{language}" for language in ("xx", "yy")]
    sizes = ("--vocabulary-size", 50, "--epochs", 1)
    output = recipe("train_on_two_files.py", *files, tmp_path / "model", *sizes)
    assert "val_perplexity" in output
    last = files[0].read_text().splitlines()[-1]
    assert f"{last}\n-> " in output
    model, tokenizer = kav.load_model(tmp_path / "model")
    assert tokenizer.vocabulary_size == model.vocabulary_size == 50


def test_unequal_files(recipe, corpus_folder, tmp_path):
    files = (corpus_folder / "train.xx", corpus_folder / "test.yy")
    with pytest.raises(AssertionError, match="600 source lines, but 20 target lines"):
        recipe("train_on_two_files.py", *files, tmp_path / "model")
