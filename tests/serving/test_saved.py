"""Translating with a SavedModel from Python."""

import re
import shutil
import threading

import numpy as np
import pytest

from keras_attnvariants import Translator
from keras_attnvariants.serving import SavedTranslator
from keras_attnvariants.serving import Status
from keras_attnvariants.serving.graphs import TOKENIZER
from keras_attnvariants.serving.graphs import nodes_of
from keras_attnvariants.serving.graphs import read_saved_model
from keras_attnvariants.utils.files import DamagedFolderError
from tests.serving.tools import LIMITS
from tests.serving.tools import sign


@pytest.fixture(scope="module")
def translator(exported):
    return SavedTranslator(exported["hc-sa"])


@pytest.fixture(scope="module")
def with_options(exported_with_options):
    return SavedTranslator(exported_with_options)


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
    nodes = nodes_of(read_saved_model(folder))
    models = {node.attr["model"].s for node in nodes if node.op == TOKENIZER}
    assert models == {tokenizer.model_bytes}
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


def replaced(name, old, new):
    """Replaces bytes in a file of a version."""

    def damage(folder):
        [path] = folder.glob(name)
        content = path.read_bytes()
        assert old in content
        path.write_bytes(content.replace(old, new))

    return damage


def cut(name, size):
    """Leaves the first bytes of a file of a version."""

    def damage(folder):
        [path] = folder.glob(name)
        path.write_bytes(path.read_bytes()[:size])

    return damage


WHERE = "assets.extra/model_info.json"
# The manifest matches.
DAMAGES = {
    "no weights": cut("variables/*.data-*", 0),
    "few weights": cut("variables/*.data-*", 1000),
    "no index": cut("variables/*.index", 0),
    "half an index": cut("variables/*.index", 100),
    "no graph": cut("saved_model.pb", 0),
    "half a graph": cut("saved_model.pb", 30_000),
    "an operator": replaced("saved_model.pb", b"GatherV2", b"GatherNd"),
    "an attribute": replaced("saved_model.pb", b"Tindices", b"Tindicey"),
    "a signature": replaced("saved_model.pb", b"serving_default", b"serving_defauld"),
    "no JSON": cut(WHERE, 100),
    "no limit": replaced(WHERE, b"max_batch", b"max_botch"),
    "a text": replaced(WHERE, b'"max_batch": 33', b'"max_batch": "33"'),
    "a wrong limit": replaced(WHERE, b'"max_batch": 33', b'"max_batch": -33'),
    "a list": replaced(WHERE, b'"signatures": {', b'"signatures": [], "x": {'),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_with_a_matching_manifest_is_one_line(name, exported, tmp_path):
    folder = shutil.copytree(exported["hc-sa"], tmp_path / "copy")
    DAMAGES[name](folder)
    sign(folder)
    message = rf".*restore it from a copy, or export the model again.* {folder}"
    with pytest.raises(DamagedFolderError) as raised:
        SavedTranslator(folder).translate(["a"])
    assert re.fullmatch(message, str(raised.value)), str(raised.value)
    assert len(str(raised.value)) < 500 + len(str(folder))


def test_changed_files_are_loaded_only_if_that_is_asked_for(exported, tmp_path):
    folder = shutil.copytree(exported["hc-sa"], tmp_path / "copy")
    (folder / "saved_model.pbtxt").write_text("")
    with pytest.raises(DamagedFolderError, match="saved_model.pbtxt"):
        SavedTranslator(folder)
    translator = SavedTranslator(folder, verify=False)
    assert translator.translate([""]) == [""]


def test_a_savedmodel_of_token_ids_translates_these_alone(exported_for_ids):
    translator = SavedTranslator(exported_for_ids)
    with pytest.raises(ValueError, match="takes `lengths`, `source_ids`"):
        translator.translate(["a"])
    ids = {"source_ids": [[5, 6], [7, 0]], "lengths": [2, 1]}
    assert translator.predict(ids)["status"].tolist() == [0, 0]


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


def test_nbest_is_that_of_the_signature(translator, server, texts):
    texts = [*texts[:40], ""]
    found = translator.nbest(texts)
    assert len(texts) > LIMITS["max_batch"]
    served = server.call(translator.path, "nbest", text=texts[:5])
    for best, translations, scores in zip(
        found[:5], served["translations"], served["scores"], strict=True
    ):
        assert [each.text for each in best] == translations.tolist()
        np.testing.assert_allclose([each.score for each in best], scores, rtol=1e-5)
    assert [each.text for each in found[-1]] == [""]
    assert found[-1][0].log_prob is None and found[-1][0].alignment is None


def test_batches_are_translated_side_by_side(exported, texts, monkeypatch):
    translator = SavedTranslator(exported["hc-sa"])
    texts = texts[: 2 * LIMITS["max_batch"]]
    expected = translator.translate(texts)
    run, meeting = translator._functions["serving_default"], threading.Barrier(2)

    def meet(**inputs):
        meeting.wait(timeout=60)
        return run(**inputs)

    translator._functions["serving_default"] = meet
    monkeypatch.setattr("keras_attnvariants.serving.saved.cores", lambda: 2)
    assert translator.translate(texts) == expected


def test_alignments_fit_their_pieces(translator, tokenizer, texts):
    texts = [texts[0], "", " ".join(texts[1:3])]
    found = translator.align(texts)
    assert [each.text for each in found] == translator.translate(texts)
    for text, each in zip(texts, found, strict=True):
        [ids] = tokenizer.encode([text])
        assert each.source_pieces == tuple(tokenizer.pieces[i] for i in ids)
        assert each.pieces[-1] == "</s>"
        assert each.alignment.shape == (len(each.pieces), len(ids))
        assert len(each.token_log_probs) == len(each.pieces)
        assert each.status == Status.OK and not each.truncated


def test_scores_of_targets(translator, server, texts):
    sources, targets = texts[:40], [*texts[40:79], ""]
    found = translator.score(sources, targets)
    served = server.call(
        translator.path, "score", source=sources[:5], target=targets[:5]
    )
    for each, log_prob in zip(found, served["log_probs"], strict=False):
        assert each.log_prob == pytest.approx(log_prob, rel=1e-4)
        assert each.log_prob == pytest.approx(sum(each.token_log_probs), rel=1e-4)
    assert found[-1].pieces == ("</s>",)
    with pytest.raises(ValueError, match="same number of rows"):
        translator.score(["a"], [])


def test_options_are_for_all_or_for_each(with_options, texts):
    texts = texts[:8]
    usual = with_options.translate_with(texts)
    assert [each.text for each in usual] == with_options.translate(texts)
    assert {each.text for each in with_options.translate_with(texts, max_length=1)} == {
        ""
    }
    mixed = with_options.translate_with(texts, max_length=[None, 1] * 4)
    assert [each.text for each in mixed[::2]] == [each.text for each in usual[::2]]
    assert {each.text for each in mixed[1::2]} == {""}
    with pytest.raises(ValueError, match=r"`max_length` must be one, .*\(8\).* 2"):
        with_options.translate_with(texts, max_length=[1, 2])
    with pytest.raises(ValueError, match="position 3 .*'min_length': 5, 'max_len"):
        with_options.translate_with(texts[:4], min_length=5, max_length=[None, 6, 7, 5])
    with pytest.raises(ValueError, match="`min_length` must be int32"):
        with_options.translate_with(texts, min_length=1.5)


def test_samples_are_those_of_a_translator(with_options, models, tokenizer, texts):
    here = Translator(models["hc-sa"], tokenizer, xla=False)
    for seed in (3, list(range(7, 13))):
        options = (texts[:6], 0.8, 5, 0.9, seed)
        found, expected = with_options.sample(*options), here.sample(*options)
        assert [each.text for each in found] == [each.text for each in expected]
        np.testing.assert_allclose(
            [each.log_prob for each in found],
            [each.log_prob for each in expected],
            atol=1e-3,
        )
        assert all(len(each.pieces) == len(each.token_log_probs) for each in found)


def test_a_signature_that_was_not_exported(translator, with_options):
    message = r"signature 'sample'.*--signature sample.*has 'align', 'nbest'"
    with pytest.raises(ValueError, match=message):
        translator.sample(["a"])
    with pytest.raises(ValueError, match="signature 'translate_with'"):
        translator.translate_with(["a"])
    for method in (with_options.nbest, with_options.align):
        with pytest.raises(ValueError, match=f"signature '{method.__name__}'"):
            method(["a"])
