"""Tests and intervals against hand-made cases, scipy and sacrebleu."""

import random

import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER
from sacrebleu.significance import PairedTest

from keras_attnvariants.backend.private import sentence_statistics
from keras_attnvariants.experiments.scores import Translations
from keras_attnvariants.experiments.scores import sentence_tests

WORDS = "the cat sat on a mat and it was red or blue while dogs ran far".split()


def noisy(references, rate, seed):
    """The references with some words replaced."""
    rng = random.Random(seed)
    return [
        " ".join(rng.choice(WORDS) if rng.random() < rate else w for w in line.split())
        for line in references
    ]


def translations(metric, texts, references):
    """Scores of runs with the seeds 0, 1, …"""
    counts = [sentence_statistics(metric, lines, references) for lines in texts]
    return Translations(metric, dict(enumerate(counts)))


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
    ours, base = (translations(metric(), [t], references) for t in (system, baseline))
    found = sentence_tests(ours, base, samples=2000)
    assert found.bootstrap == pytest.approx(expected["bs"], abs=0.035)
    assert found.randomization == pytest.approx(expected["ar"], abs=0.035)
    assert 0.01 < found.bootstrap < 0.99
    score = metric().corpus_score(system, [references]).score
    assert ours.scores() == {0: pytest.approx(score, abs=1e-9)}


def test_a_seed_decides_the_draws(references):
    ours, base = (
        translations(BLEU(), [noisy(references, 0.3, seed)], references)
        for seed in (2, 3)
    )
    first, again, other = (
        sentence_tests(ours, base, samples=100, seed=seed) for seed in (1, 1, 2)
    )
    assert first == again != other


def test_copies_of_a_run_add_no_evidence(references):
    """They would if seeds and sentences were pooled."""
    system, baseline = noisy(references, 0.3, 2), noisy(references, 0.36, 3)
    one, three = (
        sentence_tests(
            *(
                translations(BLEU(), [t] * copies, references)
                for t in (system, baseline)
            ),
            samples=200,
        )
        for copies in (1, 3)
    )
    assert three == pytest.approx(one)


def test_equal_translations_do_not_differ(references):
    texts = [noisy(references, 0.3, seed) for seed in (1, 2)]
    same = translations(BLEU(), texts, references)
    found = sentence_tests(same, same, samples=50)
    assert found == (1.0, 1.0, 0.0, 0.0)


def test_one_sentence_leaves_nothing_to_draw():
    ours, base = (
        translations(BLEU(), [[text]], ["the cat sat on the mat"])
        for text in ("the cat sat on the mat", "a cat sat on the mat")
    )
    found = sentence_tests(ours, base, samples=50)
    assert (found.bootstrap, found.randomization) == (1.0, 1.0)
    assert found.sentence_low == found.sentence_high > 0


def test_a_clear_difference_is_significant(references):
    good, bad = (
        translations(BLEU(), [noisy(references, rate, s) for s in seeds], references)
        for rate, seeds in ((0.05, (1, 2)), (0.5, (3, 4)))
    )
    found = sentence_tests(good, bad, samples=100)
    assert found.bootstrap == found.randomization == 1 / 101
    assert found.sentence_low > 10
    reverse = sentence_tests(bad, good, samples=100)
    assert reverse.sentence_low == pytest.approx(-found.sentence_high)
