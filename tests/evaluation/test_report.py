"""The report of a test set: its contents, display and storage."""

import json
from io import StringIO

import keras
import pytest
from rich.console import Console

from keras_attnvariants import DotProductAttention
from keras_attnvariants import Tokenizer
from keras_attnvariants import Transformer
from keras_attnvariants import Translator
from keras_attnvariants import save_model
from keras_attnvariants.evaluation import corpus_score
from keras_attnvariants.evaluation import evaluate

SOURCES = ["eins zwei drei vier fünf", "sechs sieben acht neun zehn"]
REFERENCES = ["one two three four five", "six seven eight nine ten"]
OUTPUT = {SOURCES[0]: "one two three four", SOURCES[1]: REFERENCES[1]}


def translate(texts):
    return [OUTPUT[text] for text in texts]


def test_scores_are_those_of_the_metrics():
    report = evaluate(translate, SOURCES, REFERENCES)
    bleu, chrf, ter = report.scores
    assert bleu == corpus_score("bleu", report.hypotheses, REFERENCES)
    assert chrf.name == "chrF2"
    assert ter == corpus_score("ter", report.hypotheses, REFERENCES)
    assert ter.value == 10
    assert report.hypotheses == list(OUTPUT.values())


def test_speed_and_parameters_are_reported_if_they_are_wanted():
    calls = []

    def counted(texts):
        calls.append(texts)
        return translate(texts)

    stored = evaluate(counted, SOURCES, REFERENCES).to_dict()
    assert len(calls) == 1
    assert stored["speed"] is stored["parameters"] is None
    report = evaluate(counted, SOURCES, REFERENCES, speed_runs=3)
    assert len(calls) == 1 + 1 + 3
    assert report.speed.tokens == 9
    assert report.hypotheses == report.speed.hypotheses


@pytest.mark.parametrize("speed_runs", [-1, 1.5, True])
def test_a_number_of_runs_that_is_none_is_refused(speed_runs):
    with pytest.raises(ValueError, match="`speed_runs` must be an integer >= 0"):
        evaluate(translate, SOURCES, REFERENCES, speed_runs=speed_runs)


def test_several_references_and_a_tokenisation():
    report = evaluate(
        translate, SOURCES, [REFERENCES, list(OUTPUT.values())], tokenize="char"
    )
    bleu = report.scores[0]
    assert bleu.value == pytest.approx(100)
    assert "nrefs:2" in bleu.signature
    assert "tok:char" in bleu.signature


def test_json_can_hold_the_whole_report():
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)])
    report = evaluate(translate, SOURCES, REFERENCES, model=model, speed_runs=2)
    stored = json.loads(json.dumps(report.to_dict()))
    assert stored == report.to_dict()
    assert stored["sentences"] == 2
    assert stored["scores"]["TER"]["value"] == 10
    assert stored["parameters"]["total"] == 15
    assert len(stored["speed"]["seconds"]) == 2
    assert stored["environment"]["backend"] == keras.backend.backend()
    assert stored["environment"]["keras"] == keras.__version__


def test_shown_report_names_scores_with_signatures_and_speed():
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)])
    console = Console(width=120, record=True, file=StringIO())
    console.print(evaluate(translate, SOURCES, REFERENCES, model=model, speed_runs=1))
    text = console.export_text()
    assert "Quality on 2 sources" in text
    assert "10.00" in text
    assert "nrefs:1|case:lc|tok:tercom|norm:no" in text
    assert "tokens / s" in text
    assert "15 of 15 are trainable" in text


def test_wrong_references_are_found_before_anything_is_translated():
    def never(texts):
        pytest.fail("translated before the references were checked")

    with pytest.raises(ValueError, match="1 references for 2 hypotheses"):
        evaluate(never, SOURCES, REFERENCES[:1])
    with pytest.raises(ValueError, match="`sources` must be .* at least one"):
        evaluate(never, [], [])


def test_lost_translation_is_refused():
    with pytest.raises(ValueError, match="Received: 1 strings for 2 texts"):
        evaluate(lambda texts: translate(texts)[:1], SOURCES, REFERENCES)


@pytest.fixture(scope="module")
def tiny_system():
    tokenizer = Tokenizer.train(SOURCES + REFERENCES, vocabulary_size=35)
    attention = DotProductAttention(num_heads=2)
    sizes = (tokenizer.vocabulary_size, 1, 8, 16)
    return Transformer(
        *sizes, attention, attention, attention, max_length=32
    ), tokenizer


def test_a_model_folder_is_loaded_and_its_parameters_are_counted(tiny_system, tmp_path):
    model, tokenizer = tiny_system
    folder = save_model(model, tmp_path / "model", tokenizer)
    report = evaluate(folder, SOURCES, REFERENCES)
    expected = Translator(model, tokenizer, xla=False).translate(SOURCES)
    assert report.hypotheses == expected
    assert report.parameters.total == model.count_params()
    assert evaluate(str(folder), SOURCES, REFERENCES).scores == report.scores


def test_a_folder_that_cannot_translate_is_refused(tiny_system, tmp_path):
    model, _ = tiny_system
    folder = save_model(model, tmp_path / "model")
    with pytest.raises(ValueError, match="its tokenizer. Received: '.*model'"):
        evaluate(folder, SOURCES, REFERENCES)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        evaluate(tmp_path / "nowhere", SOURCES, REFERENCES)


def test_an_unknown_tokenizer_is_found_before_translating():
    def translate(texts):
        raise AssertionError("translated")

    with pytest.raises(ValueError, match="`tokenize` must be one of"):
        evaluate(translate, ["a"], ["b"], tokenize="nope")


def test_a_report_shows_itself_in_a_notebook():
    report = evaluate(translate, SOURCES, REFERENCES, speed_runs=1)
    for shown in (report, report.speed):
        assert "tokens / s" in shown._repr_mimebundle_((), ())["text/html"]
