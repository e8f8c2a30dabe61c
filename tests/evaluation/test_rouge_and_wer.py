"""ROUGE and word error rates against their definitions, by hand."""

from collections import Counter

import pytest

from keras_attnvariants.evaluation import corpus_rouge
from keras_attnvariants.evaluation import word_error_rate
from keras_attnvariants.utils import machine

SUMMARIES = ["police kill the gunman", "the cat sat", "rain"]
REFERENCES = ["police killed the gunman today", "the cat sat", "a dry summer"]


def f1(hits, found, wanted):
    return 200 * hits / (found + wanted) if hits else 0.0


def overlap(summary, reference, n):
    """F1 of the n-grams of two lists of words."""
    grams = [
        Counter(zip(*(words[i:] for i in range(n)), strict=False))
        for words in (summary, reference)
    ]
    totals = [each.total() for each in grams]
    return f1((grams[0] & grams[1]).total(), *totals)


def common(first, second):
    """Length of the longest common subsequence."""
    if not first or not second:
        return 0
    if first[-1] == second[-1]:
        return 1 + common(first[:-1], second[:-1])
    return max(common(first[:-1], second), common(first, second[:-1]))


def test_rouge_is_the_mean_of_f1():
    pairs = [(s.split(), r.split()) for s, r in zip(SUMMARIES, REFERENCES, strict=True)]
    expected = {
        "ROUGE-1": [overlap(*pair, 1) for pair in pairs],
        "ROUGE-2": [overlap(*pair, 2) for pair in pairs],
        "ROUGE-L": [f1(common(*pair), *map(len, pair)) for pair in pairs],
    }
    found = corpus_rouge(SUMMARIES, REFERENCES, stem=False)
    assert [score.name for score in found] == list(expected)
    for score in found:
        values = expected[score.name]
        assert score.value == pytest.approx(sum(values) / len(values))
        assert score.signature.startswith("stem:no|rouge-score:")


def test_stems_are_equal():
    plain, stemmed = (
        corpus_rouge(SUMMARIES, REFERENCES, stem=stem)[0].value
        for stem in (False, True)
    )
    assert stemmed > plain


def test_the_errors_of_words_are_counted_over_all_sentences():
    transcripts = ["the cat sat on mat", "helo", "one two three"]
    references = ["the cat sat on the mat", "hello", "one two"]
    score = word_error_rate(transcripts, references)
    assert score.value == pytest.approx(100 * 3 / 9)
    assert score.details == "1 substitutions, 1 deletions, 1 insertions, 9 words"
    assert word_error_rate(["a"], ["a"]).value == 0
    assert word_error_rate(["a b c"], ["d"]).value == 300


def test_silence_counts():
    assert word_error_rate(["", "a"], ["b c", ""]).value == pytest.approx(150)


@pytest.mark.parametrize("metric", [corpus_rouge, word_error_rate])
def test_bad_input(metric, monkeypatch):
    with pytest.raises(ValueError, match="must not be empty"):
        metric([], [])
    with pytest.raises(ValueError, match="1 references for 2 hypotheses"):
        metric(["a", "b"], ["a"])
    with pytest.raises(ValueError, match="must be a sequence"):
        metric("a", ["a"])
    with pytest.raises(ValueError, match="`references` must hold strings only"):
        metric(["a"], [["a"], ["b"]])
    monkeypatch.setattr(machine.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"keras_attnvariants\[scores\]"):
        metric(["a"], ["a"])


@pytest.mark.parametrize(
    ("metric", "references"), [(word_error_rate, [" "]), (corpus_rouge, ["λόγος"])]
)
def test_references_without_words(metric, references):
    with pytest.raises(ValueError, match="must have words"):
        metric(["a"], references)
