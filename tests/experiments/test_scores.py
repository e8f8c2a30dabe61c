"""Tests and intervals against hand-made cases, scipy and sacrebleu."""

import random
import re

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER
from sacrebleu.significance import PairedTest

from keras_attnvariants.backend.private import sentence_statistics
from keras_attnvariants.experiments.scores import Translations
from keras_attnvariants.experiments.scores import score_test_set
from keras_attnvariants.experiments.scores import sentence_tests
from keras_attnvariants.experiments.settings import ScoreSettings
from keras_attnvariants.utils.metrics import make_metric

WORDS = "the cat sat on a mat and it was red or blue while dogs ran far".split()


def noisy(references, rate, seed):
    """The references with some words replaced."""
    rng = random.Random(seed)
    return [
        " ".join(rng.choice(WORDS) if rng.random() < rate else w for w in line.split())
        for line in references
    ]


def translations(metric, texts, references, *draws):
    """Scores of runs with the seeds 0, 1, …"""
    counts = [sentence_statistics(metric, lines, [references]) for lines in texts]
    return Translations(metric, dict(enumerate(counts)), *draws)


@pytest.fixture(scope="module")
def references():
    rng = random.Random(1)
    return [" ".join(rng.choices(WORDS, k=rng.randint(4, 12))) for _ in range(60)]


@pytest.mark.parametrize("metric", [BLEU, CHRF, TER])
def test_with_one_seed_both_tests_agree_with_sacrebleu(metric, references):
    """They agree within two standard errors of 2,000 samples."""
    system, baseline = noisy(references, 0.3, 2), noisy(references, 0.33, 3)
    named = [("base", baseline), ("ours", system)]
    expected = {}
    for kind in ("bs", "ar"):
        test = PairedTest(named, {"m": metric()}, [references], kind, n_samples=2000)
        _, (_, results) = test()[1].popitem()
        expected[kind] = results.p_value
    ours, base = (
        translations(metric(), [t], references, 2000) for t in (system, baseline)
    )
    found = sentence_tests(ours, base)
    assert found.bootstrap == pytest.approx(expected["bs"], abs=0.035)
    assert found.randomization == pytest.approx(expected["ar"], abs=0.035)
    assert 0.01 < found.bootstrap < 0.99
    score = metric().corpus_score(system, [references]).score
    assert ours.scores == {0: pytest.approx(score, abs=1e-9)}


def test_a_seed_decides_the_draws(references):
    first, again, other = (
        sentence_tests(
            *(
                translations(
                    BLEU(), [noisy(references, 0.3, seed)], references, 100, draws
                )
                for seed in (2, 3)
            )
        )
        for draws in (1, 1, 2)
    )
    assert first == again != other


def test_copies_of_a_run_add_no_evidence(references):
    """They would if seeds and sentences were pooled."""
    system, baseline = noisy(references, 0.3, 2), noisy(references, 0.36, 3)
    one, three = (
        sentence_tests(
            *(
                translations(BLEU(), [t] * copies, references, 200)
                for t in (system, baseline)
            )
        )
        for copies in (1, 3)
    )
    assert three[:4] == pytest.approx(one[:4])
    assert three[4:] == pytest.approx(one[2:4])


def test_equal_translations_do_not_differ(references):
    texts = [noisy(references, 0.3, seed) for seed in (1, 2)]
    same = translations(BLEU(), texts, references, 50)
    assert sentence_tests(same, same)[:4] == (1.0, 1.0, 0.0, 0.0)


def test_equal_scores_of_different_translations_do_not_differ():
    metric = make_metric("wer", "13a", "en")
    texts = {"base": "one two three five", "ours": "one two three"}
    base, ours = (
        translations(metric, [[text] * 20], ["one two three four"] * 20)
        for text in texts.values()
    )
    assert not np.array_equal(base.statistics[0], ours.statistics[0])
    assert sentence_tests(ours, base)[:4] == (1.0, 1.0, 0.0, 0.0)


def test_one_sentence_leaves_nothing_to_draw():
    ours, base = (
        translations(BLEU(), [[text]], ["the cat sat on the mat"], 50)
        for text in ("the cat sat on the mat", "a cat sat on the mat")
    )
    found = sentence_tests(ours, base)
    assert (found.bootstrap, found.randomization) == (1.0, 1.0)
    assert found.sentence_low == found.sentence_high > 0


def test_a_clear_difference_is_significant(references):
    good, bad = (
        translations(
            BLEU(), [noisy(references, rate, s) for s in seeds], references, 100
        )
        for rate, seeds in ((0.05, (1, 2)), (0.5, (3, 4)))
    )
    found = sentence_tests(good, bad)
    assert found.bootstrap == found.randomization == 1 / 101
    assert found.sentence_low > 10
    reverse = sentence_tests(bad, good)
    assert reverse.sentence_low == pytest.approx(-found.sentence_high)


def naive_interval(system, baseline, references, samples):
    """The hierarchical bootstrap on texts, by sacrebleu, one draw after another."""
    rng, found = random.Random(7), []
    for _ in range(samples):
        chosen = rng.choices(range(len(references)), k=len(references))
        means = []
        for runs in (system, baseline):
            drawn = rng.choices(runs, k=len(runs) - 1)
            scores = [
                BLEU()
                .corpus_score([t[i] for i in chosen], [[references[i] for i in chosen]])
                .score
                for t in drawn
            ]
            means.append(sum(scores) / len(scores))
        found.append(means[0] - means[1])
    return np.quantile(found, (0.05, 0.95))


def test_the_interval_over_seeds_and_sentences_is_that_of_a_naive_one(references):
    ours = [noisy(references, rate, s) for s, rate in enumerate((0.2, 0.28, 0.35))]
    base = [noisy(references, rate, s) for s, rate in enumerate((0.3, 0.42), start=3)]
    found = sentence_tests(
        *(translations(BLEU(), t, references, 3000) for t in (ours, base)), 0.9
    )
    expected = naive_interval(ours, base, references, 1500)
    width = expected[1] - expected[0]
    assert (found.both_low, found.both_high) == pytest.approx(expected, abs=width / 15)
    assert found.both_high - found.both_low > found.sentence_high - found.sentence_low
    one = translations(BLEU(), ours[:1], references, 10)
    assert (
        sentence_tests(one, translations(BLEU(), base, references, 10)).both_low is None
    )


def test_equal_sentences_leave_the_seeds_alone():
    """One of two seeds is drawn: four differences, each as often as another."""
    reference = "the cat sat on the mat"
    texts = [reference, "a cat sat on the mat", "the dog sat on the mat", "a dog sat"]
    ours, base = (
        translations(BLEU(), [[t] * 3 for t in pair], [reference] * 3, 4000)
        for pair in (texts[:2], texts[2:])
    )
    a, b = ours.scores.values(), base.scores.values()
    rng = np.random.default_rng(0)
    drawn = ours.with_drawn_seeds(rng) - base.with_drawn_seeds(rng)
    values, counts = np.unique(drawn.round(6), return_counts=True)
    assert values == pytest.approx(sorted(x - y for x in a for y in b))
    assert counts / 4000 == pytest.approx(0.25, abs=0.03)


def test_texts_without_a_system_are_in_no_test(references):
    """All tests and their corrections are as if the texts were not there."""
    base, ours, more = (
        {seed: noisy(references, rate, 10 * place + seed) for seed in (1, 2)}
        for place, rate in enumerate((0.5, 0.4, 0.3))
    )
    texts = {"base": base, "ours": ours, "more": more}
    settings = ScoreSettings(metrics=("rouge1",), samples=50)
    call = ("t", texts, references, "en", "base", settings)
    scores, differences = score_test_set(*call)
    lead = {"lead": [line.split()[0] for line in references], "oracle": references}
    more_scores, same = score_test_set(*call, lead)
    assert same == differences and len(differences) == 2
    assert more_scores[:3] == scores
    assert [(s.system, s.seeds) for s in more_scores[3:]] == [
        ("lead", (0,)),
        ("oracle", (0,)),
    ]
    assert more_scores[4].mean == 100


def test_the_bleu_of_moses_tokens():
    """As sacrebleu scores tokens that are lower-cased and split by hand."""
    texts = ["Ein Mann, z. B. im 'roten' Hemd.", "Zwei Hunde"]
    references = ["Ein Mann, z. B. im 'blauen' Hemd.", "zwei Hunde & Katzen"]
    tokens = ["ein mann , z. b. im ' roten ' hemd .", "zwei hunde"]
    wanted = ["ein mann , z. b. im ' blauen ' hemd .", "zwei hunde & katzen"]
    settings = ScoreSettings(metrics=("bleu-moses",), samples=10)
    [found], [] = score_test_set(
        "t", {"a": {1: texts}}, references, "de", "b", settings
    )
    expected = BLEU(tokenize="none", force=True).corpus_score(tokens, [wanted])
    assert found.mean == pytest.approx(expected.score, abs=1e-9)
    assert found.metric == "BLEU, Moses tokens"
    assert re.search(r"case:lc.*tok:sacremoses-[\d.]+-de", found.signature)
