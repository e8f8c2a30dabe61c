"""Scores against the output of the command `sacrebleu` for the same lines."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_attnvariants.evaluation import Score
from keras_attnvariants.evaluation import corpus_score
from keras_attnvariants.evaluation import metrics
from keras_attnvariants.evaluation.metrics import check_tokenizer

HYPOTHESES = [
    "The cat sat on the mat, and purred.",
    "Two dogs are running through high grass",
    "There is no street left in the old town.",
    'He said: "I shall come tomorrow at noon"!',
]
REFERENCES = [
    "The cat was sitting on the mat and purred.",
    "Two dogs run through the high grass.",
    "There is no street left in the old town.",
    '"I will come at noon tomorrow", he said.',
]
MORE_REFERENCES = [
    "A cat sat on the mat and purred.",
    "Two dogs are running through tall grass.",
    "No street is left in the old town.",
    'He said: "Tomorrow I come at noon."',
]
METRICS = ["bleu", "chrf", "ter"]


# sacrebleu references.txt -i hypotheses.txt -m bleu chrf ter -w 6
@pytest.mark.parametrize(
    ("metric", "name", "value", "signature"),
    [
        ("bleu", "BLEU", 41.911459, "case:mixed|eff:no|tok:13a|smooth:exp"),
        ("chrf", "chrF2", 65.765224, "case:mixed|eff:yes|nc:6|nw:0|space:no"),
        ("ter", "TER", 42.424242, "case:lc|tok:tercom|norm:no|punct:yes|asian:no"),
    ],
)
def test_scores_of_the_command_line(metric, name, value, signature):
    score = corpus_score(metric, HYPOTHESES, REFERENCES)
    assert score.name == name
    assert score.value == pytest.approx(value, abs=1e-6)
    assert score.signature.startswith(f"nrefs:1|{signature}|version:")


@pytest.mark.parametrize(
    ("metric", "value"),
    [("bleu", 62.319824), ("chrf", 78.430557), ("ter", 25.396825)],
)
def test_several_references(metric, value):
    score = corpus_score(metric, HYPOTHESES, [REFERENCES, MORE_REFERENCES])
    assert score.value == pytest.approx(value, abs=1e-6)
    assert score.signature.startswith("nrefs:2|")


def test_options_reach_sacrebleu():
    bleu = corpus_score("bleu", HYPOTHESES, REFERENCES, tokenize="char")
    assert bleu.value == pytest.approx(73.113687, abs=1e-6)
    assert "tok:char" in bleu.signature
    chrf = corpus_score("chrf", HYPOTHESES, REFERENCES, word_order=2)
    assert chrf.name == "chrF2++"
    assert chrf.value == pytest.approx(64.451062, abs=1e-6)


def test_printed_score_can_be_quoted():
    line = str(corpus_score("bleu", HYPOTHESES, REFERENCES))
    assert line.startswith("BLEU|nrefs:1|case:mixed|")
    assert " = 41.91 79.5/51.4/32.3/25.9 (BP = 0.975 " in line
    assert str(Score("TER", 5.0, "nrefs:1")) == "TER|nrefs:1 = 5.00"


def test_inputs_may_be_tuples_and_stay_as_they_are():
    hypotheses = tuple(HYPOTHESES)
    assert corpus_score("bleu", hypotheses, tuple(REFERENCES)) == corpus_score(
        "bleu", HYPOTHESES, REFERENCES
    )


@given(st.lists(st.text(max_size=20), min_size=1, max_size=5))
def test_any_text_can_be_scored_against_itself(texts):
    assert corpus_score("ter", texts, texts).value == 0
    assert 0 <= corpus_score("bleu", texts, texts).value <= 100 + 1e-9
    assert 0 <= corpus_score("chrf", texts, texts).value <= 100 + 1e-9


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(
    ("hypotheses", "references", "message"),
    [
        ([], [], r"`hypotheses` must be .*at least one\. Received: \[\]"),
        (["a"], [], r"`references` must be .*at least one\. Received: \[\]"),
        (["a"], [[]], r"`references` must be .*at least one\. Received: \[\]"),
        (["a"], ["a", "b"], "Received: 2 references for 1 hypotheses"),
        (["a", "b"], [["a", "b"], ["a"]], "Received: 1 references for 2 hypotheses"),
        ("a", ["a"], "`hypotheses` must be a sequence of strings.* Received: 'a'"),
        (["a"], "a", "`references` must be a sequence of strings.* Received: 'a'"),
        (["a", None], ["a", "b"], "Received: None"),
        ([b"a"], ["a"], "Received: b'a'"),
        (["a", "b"], ["a", 3], "`references` must be .* Received: 3"),
        (None, ["a"], "`hypotheses` must be .* Received: None"),
        (iter("ab"), ["a", "b"], "`hypotheses` must be .* Received: <str"),
    ],
)
def test_bad_input_is_refused(metric, hypotheses, references, message):
    with pytest.raises(ValueError, match=message):
        corpus_score(metric, hypotheses, references)


def test_tokenizers_are_checked_by_name_and_by_what_they_need(monkeypatch):
    check_tokenizer("13a")
    check_tokenizer("zh")
    with pytest.raises(ValueError, match="`tokenize` must be one of.*'nope'"):
        check_tokenizer("nope")

    def lacking(tokenize):
        raise RuntimeError("extra dependencies")

    lacking.TOKENIZERS = ("ja-mecab",)
    monkeypatch.setattr(metrics, "BLEU", lacking)
    with pytest.raises(ValueError, match="cannot use.*extra dep.*'ja-mecab'"):
        check_tokenizer("ja-mecab")
