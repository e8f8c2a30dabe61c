"""Tasks: names, endings of files, tokenizers, and corpora in forms of their own."""

import gzip

import numpy as np
import pytest

import keras_attnvariants as kav
from keras_attnvariants.data import tasks
from keras_attnvariants.evaluation.baselines import BASELINES
from keras_attnvariants.models.base import TASKS
from tests.serving.tools import OtherProcess

ATTENTION = kav.DotProductAttention(num_heads=2)


def small_model(**options):
    options = {"vocabulary_size": 20, "num_layers": 1, "hidden_dim": 8, **options}
    return kav.Transformer(
        intermediate_dim=16,
        encoder_attention=ATTENTION,
        decoder_attention=ATTENTION,
        cross_attention=ATTENTION,
        **options,
    )


def test_there_are_three_tasks():
    assert [*tasks.TASKS] == ["translation", "summarisation", "speech"]
    assert all(tasks.get(name).name == name for name in tasks.TASKS)


def test_unknown_task_is_refused():
    with pytest.raises(ValueError, match="`task` must be one of .* Received: 'sums'"):
        tasks.get("sums")


def test_languages_are_those_of_the_task_unless_given():
    summaries, translation = tasks.get("summarisation"), tasks.get("translation")
    assert summaries.sides(None, None) == ("source", "target")
    assert summaries.sides("article", "title") == ("article", "title")
    assert translation.sides("en", "de") == ("en", "de")
    with pytest.raises(ValueError, match="`source_language`.*Received: None"):
        translation.sides(None, "de")


@pytest.mark.parametrize(
    ("task", "sides"),
    [
        ("translation", ("audio", "text")),
        ("translation", ("de", "audio")),
        ("summarisation", ("audio", None)),
        ("speech", ("de", "en")),
    ],
)
def test_recordings_are_sources_of_one_task(task, sides):
    assert tasks.get("speech").sides(None, "de") == ("audio", "de")
    with pytest.raises(ValueError, match=f"'audio' for .*Received: .* for '{task}'"):
        tasks.get(task).sides(*sides)


def test_a_model_has_a_known_task():
    assert [*tasks.TASKS] == [*TASKS]
    with pytest.raises(ValueError, match="`task` must be one of .* Received: 'x'"):
        small_model(task="x")


@pytest.mark.parametrize(
    ("task", "preset"),
    [
        ("translation", "kav/base/digits"),
        ("summarisation", "kav/base/digits"),
        ("speech", "kav/base/bible"),
    ],
)
def test_presets_read_the_sources_of_a_task(task, preset):
    found = kav.presets.get(preset)
    with pytest.raises(ValueError, match=f"The task '{task}' has .*: {preset}"):
        tasks.get(task).check(found, preset)
    tasks.get(found.task).check(found, preset)
    # A model that translates may go on with summaries.
    tasks.get("summarisation").check(kav.presets.get("kav/base/bible"), "base")


def test_models_carry_the_name_of_their_task(tmp_path):
    tokenizer = kav.Tokenizer.train(["a small house", "the small mouse"], 15)
    model = small_model(task="summarisation")
    assert tasks.task_of(model).name == "summarisation"
    kav.save_model(model, tmp_path / "model", tokenizer)
    loaded = kav.load_model(tmp_path / "model")
    assert loaded.model.task == "summarisation"
    assert loaded.tokenizer.sha256 == tokenizer.sha256


def test_models_of_earlier_versions_translate():
    config = small_model().get_config()
    assert config.pop("task") == "translation"
    assert kav.Transformer.from_config(config).task == "translation"


def test_presets_give_their_task_to_what_they_build():
    preset = kav.presets.get("loem2022/neural-ngram/gigaword")
    assert preset.task == "summarisation"
    sizes = dict(num_layers=1, hidden_dim=16, intermediate_dim=16)
    assert preset.build(30, **sizes).task == "summarisation"
    assert preset.build(30, task="translation", **sizes).task == "translation"
    assert kav.presets.get("kav/base/multi30k").task == "translation"


def test_corpora_of_a_task_need_no_languages(tmp_path):
    folder = tmp_path / "papers"
    folder.mkdir()
    document = "word " * 1000
    with gzip.open(folder / "train.source.gz", "wt") as file:
        file.write(f"{document}\none\n")
    (folder / "train.target").write_text("short\ntwo\n")
    read = dict(spec=folder, cache_dir=tmp_path / "cache")
    corpus = kav.data.load_corpus(task="summarisation", **read)
    assert corpus.task == "summarisation"
    assert corpus.read_lines("train") == ([document.strip(), "one"], ["short", "two"])
    short = kav.data.load_corpus(
        source_language="source", target_language="target", **read
    )
    assert short.task == "translation"
    assert short.read_lines("train") == (["one"], ["two"])


def test_long_documents_are_cut_in_training(tmp_path):
    folder = tmp_path / "papers"
    folder.mkdir()
    documents = ["a b c d e f g h", "a b", ""]
    (folder / "train.source").write_text("".join(f"{d}\n" for d in documents))
    (folder / "train.target").write_text("a\na b c\nb\n")
    tokenizer = kav.Tokenizer.train(["a b c d e f g h"] * 20, 13)
    planned = {}
    for task in ("summarisation", "translation"):
        corpus = kav.data.load_corpus(
            folder, "source", "target", cache_dir=tmp_path / task, task=task
        )
        # The empty document is left out, and the longer summary is not.
        assert corpus.reports["train"].problems == {"empty": 1}
        tokens = kav.data.TokenizedCorpus(corpus, tokenizer, max_length=9)
        planned[task] = tokens.plan("train", 40).num_skipped
        if task == "summarisation":
            rows = [
                row
                for inputs, _, _ in tokens.training_dataset(40).take(
                    tokens.num_batches(40)
                )
                for row in inputs["source_ids"].numpy()
                if row.any()
            ]
            cut = tokenizer.encode(documents[:1])[0][:9]
            assert cut in [row.tolist() for row in rows]
    assert planned == {"summarisation": 0, "translation": 1}


def test_long_and_empty_documents_have_summaries():
    tokenizer = kav.Tokenizer.train(["a b c d e f g h"] * 20, 13)
    model = small_model(task="summarisation", max_length=16)
    translator = kav.Translator(model, tokenizer, xla=False, max_length=4)
    with pytest.warns(UserWarning, match="more than 16 tokens"):
        [none, cut, start] = translator(["", "a b " * 20, "a b " * 4])
    assert none == "" and cut == start
    assert translator.num_truncated == 1


@pytest.mark.filterwarnings("ignore:`texts` has texts of more than 16 tokens")
def test_odd_documents_in_exports_and_evaluations(tmp_path):
    """Empty, shorter than their summaries, and longer than the limit."""
    tokenizer = kav.Tokenizer.train(["a b c d e f g h"] * 20, 13)
    limits = {"min_length": 3, "no_repeat_ngram": 2}
    sizes = dict(task="summarisation", max_length=16, search_settings=limits)
    model = small_model(**sizes | {"vocabulary_size": 13})
    documents = ["", "  ", "a", "a b " * 3, "a b " * 4, "a b " * 20]
    is_long = [False] * 5 + [True]
    translator = kav.Translator(model, tokenizer, xla=False)
    found = translator(documents)
    assert found[:2] == ["", ""] and all(found[2:])
    assert len(tokenizer.encode(found)[2]) >= 3
    path = kav.serving.export(model, tokenizer, tmp_path / "exported")
    server = OtherProcess("keras_attnvariants")
    served = server.call(path, "serving_default", text=np.array(documents))
    server.close()
    assert list(served["translations"]) == found
    assert [len(i) > 16 for i in tokenizer.encode(documents)] == is_long
    assert len(tokenizer.encode(documents)[4]) == 16
    assert served["truncated"].tolist() == is_long
    assert not served["status"].any()
    references = ["a b c d e f g h a b c", "", "a b c", "—", "b", "a b"]
    report = kav.evaluation.evaluate(translator, documents, references)
    assert [score.name for score in report.scores] == ["ROUGE-1", "ROUGE-2", "ROUGE-L"]
    for baseline in BASELINES.values():
        assert baseline(documents, [references])[:3] == ["", "", "a"]
