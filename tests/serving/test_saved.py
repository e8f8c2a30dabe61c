"""Translating with a SavedModel from Python."""

import shutil

import pytest

from keras_attnvariants.serving import SavedTranslator
from keras_attnvariants.serving.operators import tokenizer_models
from keras_attnvariants.utils.files import DamagedFolderError
from tests.serving.tools import sign


@pytest.fixture(scope="module")
def translator(exported):
    return SavedTranslator(exported["hc-sa"])


def test_any_number_of_texts_keeps_its_order(translator, exported, server, texts):
    texts = [*texts[:80], "", *texts[80:90]]
    translations = translator.translate(texts)
    for start in range(0, len(texts), 30):
        expected = server.call(
            exported["hc-sa"], "serving_default", text=texts[start : start + 30]
        )["translations"].tolist()
        assert translations[start : start + 30] == expected
    assert translations[80] == ""


def test_tokenizers_are_read_by_sentencepiece_before_tensorflow_text(
    exported, tokenizer, tmp_path
):
    folder = shutil.copytree(exported["hc-sa"], tmp_path / "copy")
    assert tokenizer_models(folder) == {tokenizer.model_bytes}
    content = (folder / "saved_model.pb").read_bytes()
    cut = b"\xff" * len(tokenizer.model_bytes)
    changed = content.replace(tokenizer.model_bytes, cut)
    assert changed != content
    (folder / "saved_model.pb").write_bytes(changed)
    with pytest.raises(DamagedFolderError, match="saved_model.pb is not what"):
        SavedTranslator(folder)
    sign(folder)
    with pytest.raises(ValueError, match="is not a SentencePiece model"):
        SavedTranslator(folder)


def test_changed_files_are_loaded_only_if_that_is_asked_for(exported, tmp_path):
    folder = shutil.copytree(exported["hc-sa"], tmp_path / "copy")
    (folder / "saved_model.pbtxt").write_text("")
    with pytest.raises(DamagedFolderError, match="saved_model.pbtxt"):
        SavedTranslator(folder)
    translator = SavedTranslator(folder, verify=False)
    assert translator.translate([""]) == [""]


def test_a_savedmodel_of_token_ids_is_refused_in_one_line(exported_for_ids):
    message = r"^`path` must be .* translates text\. .* translate_ids .*Received: .*$"
    with pytest.raises(ValueError, match=message):
        SavedTranslator(exported_for_ids)


def test_no_text_has_no_translation(translator):
    assert translator.translate([]) == []


def test_lone_surrogates_are_read_as_unknown(translator):
    assert translator.translate(["a \ud800 b"]) == translator.translate(["a ? b"])


def test_a_lone_string_is_refused(translator):
    with pytest.raises(TypeError, match="`texts` must be a list"):
        translator.translate("abc")


def test_the_newest_version_is_taken(exported, tmp_path):
    for version in ("2", "10"):
        shutil.copytree(exported["hc-sa"], tmp_path / version)
    assert SavedTranslator(tmp_path).path == tmp_path / "10"


def test_other_folders_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=rf"Received: {tmp_path}"):
        SavedTranslator(tmp_path)
