"""Tests and intervals against hand-made cases, scipy and sacrebleu."""

import random

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER
from sacrebleu.significance import PairedTest
from scipy import stats

from keras_attnvariants.evaluation import significance as of_one_seed
from keras_attnvariants.experiments.significance import holm
from keras_attnvariants.experiments.significance import seed_tests
from keras_attnvariants.experiments.significance import sentence_tests
from keras_attnvariants.experiments.significance import statistics_of

WORDS = "the cat sat on a mat and it was red or blue while dogs ran far".split()


def noisy(references, rate, seed):
    """The references with some words replaced."""
    rng = random.Random(seed)
    return [
        " ".join(rng.choice(WORDS) if rng.random() < rate else w for w in line.split())
        for line in references
    ]


@pytest.fixture(scope="module")
def references():
    rng = random.Random(1)
    return [" ".join(rng.choices(WORDS, k=rng.randint(4, 12))) for _ in range(60)]


@pytest.mark.parametrize("metric", [BLEU, CHRF, TER])
def test_with_one_seed_both_tests_are_those_of_sacrebleu(metric, references):
    system, baseline = noisy(references, 0.3, 2), noisy(references, 0.33, 3)
    named = [("base", baseline), ("ours", system)]
    expected = {}
    for kind in ("bs", "ar"):
        with of_one_seed.sacrebleu_seed(12345):
            test = PairedTest(named, {"m": metric()}, [references], kind, n_samples=200)
        _, (_, results) = test()[1].popitem()
        expected[kind] = results.p_value
    ours, base = (statistics_of(metric(), [t], references) for t in (system, baseline))
    found = sentence_tests(ours, base, samples=200)
    assert found.bootstrap == pytest.approx(expected["bs"], abs=1e-12)
    assert found.randomization == pytest.approx(expected["ar"], abs=1e-12)
    assert 0.0 < found.bootstrap < 1.0
    score = metric().corpus_score(system, [references]).score
    assert ours.seed_scores() == [pytest.approx(score, abs=1e-9)]


def test_copies_of_a_run_add_no_evidence(references):
    """As they would if seeds and sentences were thrown together."""
    system, baseline = noisy(references, 0.3, 2), noisy(references, 0.36, 3)
    one, three = (
        sentence_tests(
            *(
                statistics_of(BLEU(), [t] * copies, references)
                for t in (system, baseline)
            ),
            samples=200,
        )
        for copies in (1, 3)
    )
    assert three == pytest.approx(one)


def test_equal_translations_do_not_differ(references):
    texts = [noisy(references, 0.3, seed) for seed in (1, 2)]
    same = statistics_of(BLEU(), texts, references)
    found = sentence_tests(same, same, samples=50)
    assert found == (1.0, 1.0, 0.0, 0.0)


def test_a_clear_difference_is_significant(references):
    good = statistics_of(
        BLEU(), [noisy(references, 0.05, s) for s in (1, 2)], references
    )
    bad = statistics_of(BLEU(), [noisy(references, 0.5, s) for s in (3, 4)], references)
    found = sentence_tests(good, bad, samples=100)
    assert found.bootstrap == found.randomization == 1 / 101
    assert found.low > 10
    reverse = sentence_tests(bad, good, samples=100)
    assert reverse.low == pytest.approx(-found.high)


def test_the_tests_over_seeds_are_those_of_scipy():
    system, baseline = {1: 31.2, 2: 30.9, 3: 31.6}, {1: 30.1, 2: 30.8, 3: 30.2}
    found = seed_tests(system, baseline)
    first, second = list(system.values()), list(baseline.values())
    assert found.welch == stats.ttest_ind(first, second, equal_var=False).pvalue
    assert found.paired == pytest.approx(stats.ttest_rel(first, second).pvalue)
    assert found.low < np.mean(first) - np.mean(second) < found.high
    reverse = seed_tests(baseline, system)
    assert (reverse.low, reverse.high) == pytest.approx((-found.high, -found.low))


def test_runs_of_other_seeds_are_not_paired():
    found = seed_tests({1: 31.0, 2: 30.0}, {3: 29.0, 4: 28.5})
    assert found.welch is not None
    assert found.paired is None


@pytest.mark.filterwarnings("error")
def test_what_has_no_spread_has_no_test():
    assert set(seed_tests({1: 31.0}, {1: 30.0})) == {None}
    assert set(seed_tests({1: 31.0, 2: 31.0}, {1: 30.0, 2: 30.0})) == {None}


def test_the_correction_of_holm_by_hand():
    # The smallest of four counts four times, the next three times, …
    assert holm([0.005, 0.011, 0.02, 0.04]) == pytest.approx([0.02, 0.033, 0.04, 0.04])
    # A later one is never smaller than one before it.
    assert holm([0.03, 0.02]) == [0.04, 0.04]
    assert holm([0.6, 0.9]) == [1.0, 1.0]
    assert holm([None, 0.04]) == [None, 0.04]
    assert holm([]) == []
