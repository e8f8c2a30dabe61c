"""ROUGE and word error rates against their definitions, by hand."""

from collections import Counter

import pytest
from rouge_score.rouge_scorer import RougeScorer

from keras_attnvariants.evaluation import corpus_score
from keras_attnvariants.evaluation.baselines import BASELINES
from keras_attnvariants.evaluation.baselines import sentences_of
from keras_attnvariants.utils import machine
from keras_attnvariants.utils.metrics import ROUGE

SUMMARIES = ["police kill the gunman", "the cat sat", "rain"]
REFERENCES = ["police killed the gunman today", "the cat sat", "a dry summer"]


def rouge(summaries, references, **options):
    """ROUGE-1, ROUGE-2 and ROUGE-L."""
    return [corpus_score(kind, summaries, references, **options) for kind in ROUGE]


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
    found = rouge(SUMMARIES, REFERENCES, stem=False)
    assert [score.name for score in found] == list(expected)
    for score in found:
        values = expected[score.name]
        assert score.value == pytest.approx(sum(values) / len(values))
        assert "|score:mean-F1|references:best|stem:no|rouge-score:" in score.signature


def test_stems_are_equal():
    plain, stemmed = (
        rouge(SUMMARIES, REFERENCES, stem=stem)[0].value for stem in (False, True)
    )
    assert stemmed > plain


def test_the_errors_of_words_are_counted_over_all_sentences():
    transcripts = ["the cat sat on mat", "helo", "one two three"]
    references = ["the cat sat on the mat", "hello", "one two"]
    score = corpus_score("wer", transcripts, references)
    assert score.value == pytest.approx(100 * 3 / 9)
    assert score.details == "1 substitutions, 1 deletions, 1 insertions, 9 words"
    assert corpus_score("wer", ["a"], ["a"]).value == 0
    assert corpus_score("wer", ["a b c"], ["d"]).value == 300


def test_silence_counts():
    assert corpus_score("wer", ["", "a"], ["b c", ""]).value == pytest.approx(150)


@pytest.mark.parametrize("metric", ["rouge2", "wer"])
def test_bad_input(metric, monkeypatch):
    with pytest.raises(ValueError, match="at least one. Received"):
        corpus_score(metric, [], [])
    with pytest.raises(ValueError, match="1 references for 2 hypotheses"):
        corpus_score(metric, ["a", "b"], ["a"])
    with pytest.raises(ValueError, match="must be a sequence"):
        corpus_score(metric, "a", ["a"])
    with pytest.raises(ValueError, match="`references` must be a sequence of strings"):
        corpus_score(metric, ["a"], [["a"], [1]])
    monkeypatch.setattr(machine.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"keras_attnvariants\[scores\]"):
        corpus_score(metric, ["a"], ["a"])


def test_references_without_words():
    with pytest.raises(ValueError, match="must have words"):
        corpus_score("wer", ["a"], [" "])
    for empty in ("", "…", "— 。"):
        assert [score.value for score in rouge(["a"], [empty])] == [0, 0, 0]
        assert rouge(["a b", "c"], [empty, "c"])[0].value == 50


@pytest.mark.parametrize(
    ("reference", "summary", "words"),
    [
        ("Дождь шёл, в Москве!", "в Москве дождь", (4, 3, 3, 1, 2)),
        ("В 2020 году: Ford", "году", (4, 1, 1, 0, 1)),
        ("下雨了。", "雨了", (3, 2, 2, 1, 2)),
        ("बारिश हुई", "बारिश", (2, 1, 1, 0, 1)),
    ],
)
def test_words_of_other_scripts_than_latin(reference, summary, words):
    """By hand: words of both, words and pairs in common, longest subsequence."""
    wanted, found, ones, twos, longest = words
    expected = [
        f1(ones, found, wanted),
        f1(twos, found - 1, wanted - 1),
        f1(longest, found, wanted),
    ]
    values = [score.value for score in rouge([summary], [reference])]
    assert values == pytest.approx(expected)


def test_english_has_the_scores_of_the_library():
    texts = ["Café λ 3.5% rain's", "the naïve cats (2)", "...", "A", "", "Über 下 cats"]
    for kind in ("rouge1", "rouge2", "rougeL"):
        scorer = RougeScorer([kind], use_stemmer=True)
        for reference in texts:
            for summary in [*texts, "Дождь 3"]:
                own = corpus_score(kind, [summary], [reference])
                library = scorer.score(reference, summary)[kind].fmeasure
                assert own.value == pytest.approx(100 * library)


def test_the_best_of_several_references_counts():
    several = [["the dog ran", "rain"], ["the cat sat", None]]
    [one, two, _] = rouge(["the cat sat", "rain"], several)
    assert (one.value, two.value) == (100, pytest.approx(50))
    assert one.signature.startswith("nrefs:var|")
    assert corpus_score("wer", ["the cat sat", "rain"], several).value == 0


def test_errors_of_characters():
    score = corpus_score("cer", ["a  bc", "", "x"], ["a bd", "yz", ""])
    assert score.details == "1 substitutions, 2 deletions, 1 insertions, 6 characters"
    assert score.value == pytest.approx(100 * 4 / 6)
    assert "case:mixed|punctuation:yes|spaces:one|jiwer:" in score.signature


@pytest.mark.parametrize("name", ["bleu", "rouge1", "wer"])
def test_intervals_hold_the_score(name):
    texts = [f"{word} sat on the mat" for word in "abcdefghij"]
    references = [f"{word} sat on a mat" for word in "abcdeklmno"]
    score = corpus_score(name, texts, references, samples=500)
    low, high = score.interval
    assert low < score.value < high
    assert score.value == corpus_score(name, texts, references).value
    assert score.shown == f"{score.value:.2f} [{low:.2f}, {high:.2f}]"


def test_groups_are_drawn_together():
    """Errors of one speaker are alike: their interval is wider than by utterance."""
    texts = ["right"] * 50 + ["wrong"] * 50
    speakers = [str(i // 10) for i in range(100)]
    rate = ["wer", texts, ["right"] * 100]
    alone = corpus_score(*rate, samples=500).interval
    together = corpus_score(*rate, samples=500, groups=speakers).interval
    assert together[1] - together[0] > 2 * (alone[1] - alone[0])
    with pytest.raises(ValueError, match="`groups` must hold one .* 1 for 100"):
        corpus_score(*rate, samples=500, groups=["a"])


def test_documents_and_summaries_of_the_baselines():
    document = 'Rain fell. "It was J. Smith\'s coat," he said! A dry summer came.'
    assert sentences_of(document) == [
        "Rain fell.",
        '"It was J. Smith\'s coat," he said!',
        "A dry summer came.",
    ]
    assert sentences_of("") == [""]
    references = [["the dry summer", "none"], ["his coat", None]]
    documents = [document, ""]
    assert BASELINES["lead-1"](documents, references) == ["Rain fell.", ""]
    assert BASELINES["oracle"](documents, references) == ["A dry summer came.", ""]
    # No other sentence has a better sum of the scores that choose it.
    [chosen] = BASELINES["oracle"](documents[:1], [["the dry summer"]])
    best = rouge([chosen], ["the dry summer"])
    for sentence in sentences_of(document):
        other = rouge([sentence], ["the dry summer"])
        assert sum(s.value for s in other[:2]) <= sum(s.value for s in best[:2])
