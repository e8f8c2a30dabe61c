"""Sentences of the summary, for every case that they distinguish."""

import dataclasses
import html
import io
import re

import pytest
from rich.console import Console

from keras_attnvariants.experiments.page.ranking import Ranking
from keras_attnvariants.experiments.page.rendering import rendered
from tests.experiments import made_up


def summary(result) -> list[str]:
    """The sentences at the top of the page, as text."""
    bare = dataclasses.replace(result, analyses=(), samples=(), attention=())
    section = rendered(bare).split('<div class="summary">')[1].split("</div>")[0]
    return [
        " ".join(html.unescape(re.sub("<.*?>", "", paragraph)).split())
        for paragraph in re.findall("<p>(.*?)</p>", section, re.DOTALL)
    ]


def result_of(means: dict[str, float], metric: str = "BLEU", seeds=2, **p_values):
    """A comparison by one metric; `p_values` are of the systems by test."""
    result = made_up.comparison()
    base = means["base"]
    scores, differences = [], []
    for name, mean in means.items():
        score = made_up.score(0, name, "test2016", metric)
        scores.append(
            dataclasses.replace(
                score,
                values=(mean,) * seeds,
                mean=mean,
                deviation=0.2 if seeds > 1 else None,
            )
        )
        if name != "base":
            tests = {test: values.get(name) for test, values in p_values.items()}
            differences.append(
                dataclasses.replace(
                    made_up.difference(1, name, "test2016", metric),
                    difference=mean - base,
                    both_low=mean - base - 0.4,
                    both_high=mean - base + 0.4,
                    detectable=1.25 if "dunnett" in tests else None,
                    **{"bootstrap_holm": None, "dunnett": None, **tests},
                )
            )
    return dataclasses.replace(
        result,
        metrics=(metric,),
        missing=(),
        scores=tuple(scores),
        differences=tuple(differences),
    )


def test_what_needs_no_model_is_in_tables_and_in_no_ranking():
    result = result_of({"base": 30.0, "hc-sa": 31.0, "sh-x": 29.0})
    better = dataclasses.replace(
        result.scores[0], system="oracle", values=(50.0,), mean=50.0, deviation=None
    )
    more = dataclasses.replace(
        result, scores=(*result.scores, better), untrained=("lead-1", "oracle")
    )
    assert summary(more) == summary(result)
    rank = Ranking.main(more)
    assert rank.best == ["hc-sa"] and [*rank.untrained] == ["oracle"]
    assert rank.front("parameters") == Ranking.main(result).front("parameters")
    page = rendered(dataclasses.replace(more, analyses=(), samples=(), attention=()))
    [row] = re.findall(r"<tr>\s*<th[^>]*><bdi>oracle.*?</tr>", page, re.DOTALL)
    assert "50.00" in row and "no model" in row
    assert "three systems" in page or "3 systems" in page
    table = Console(width=120, record=True, file=io.StringIO())
    table.print(more)
    [line] = [r for r in table.export_text().splitlines() if "oracle" in r]
    assert line.split("│")[2].strip() == "–" and "50.00" in line


def test_the_best_system_is_significantly_better():
    result = result_of(
        {"base": 31.0, "hc-sa": 31.5, "sh-x": 28.0},
        bootstrap_holm={"hc-sa": 0.01, "sh-x": 0.001},
        dunnett={"hc-sa": 0.2, "sh-x": 0.04},
    )
    first, dunnett, bootstrap, *_ = summary(result)
    assert first == (
        "hc-sa has the best BLEU on test2016: 31.50 ± 0.20 (mean and standard "
        "deviation over two seeds). It differs from the baseline, base, by +0.50 "
        "(95 % interval over seeds and sentences +0.10 to +0.90), which is significant "
        "by the paired bootstrap over sentences but not by the Dunnett test over seeds."
    )
    assert bootstrap == (
        "By the paired bootstrap over sentences, two systems differ significantly from "
        "base (p < 0.05, corrected for two comparisons): hc-sa (+0.50) is "
        "better; sh-x (−3.00) is worse."
    )
    assert dunnett == (
        "By the Dunnett test over seeds, one system differs significantly from base (p "
        "< 0.05, corrected for two comparisons): sh-x (−3.00) is worse. With the "
        "standard deviation that was seen, the Dunnett test finds a difference of 1.25 "
        "in 80 % of comparisons; one of 0.5 would take 9 seeds of each system."
    )
    verdicts = [Ranking.main(result).verdict(name) for name in ("hc-sa", "sh-x")]
    assert verdicts == ["alike", "worse"]


def test_nothing_is_significant():
    result = result_of(
        {"base": 31.0, "hc-sa": 31.1, "sh-x": 30.9},
        bootstrap_holm={"hc-sa": 0.6, "sh-x": 0.4},
    )
    first, bootstrap, *_ = summary(result)
    assert "which is not significant by the paired bootstrap over sentences." in first
    assert bootstrap == (
        "By the paired bootstrap over sentences, no system differs significantly from "
        "base (p < 0.05, corrected for two comparisons; the smallest "
        "p-value is 0.400)."
    )
    assert not any("Dunnett" in sentence for sentence in summary(result)[1:])


def test_the_only_difference_is_significant():
    result = result_of({"base": 31.0, "hc-sa": 33.0}, bootstrap_holm={"hc-sa": 0.0001})
    assert summary(result)[1] == (
        "By the paired bootstrap over sentences, one system differs significantly from "
        "base (p < 0.05): hc-sa (+2.00) is better."
    )


def test_the_baseline_is_the_best():
    result = result_of(
        {"base": 31.0, "hc-sa": 30.5, "sh-x": 28.0}, bootstrap_holm={"hc-sa": 0.3}
    )
    sentences = summary(result)
    assert sentences[0] == (
        "The baseline, base, has the best BLEU on test2016: 31.00 ± 0.20 (mean and "
        "standard deviation over two seeds). hc-sa comes next, with 30.50."
    )


def test_systems_share_the_best_score():
    result = result_of({"base": 31.001, "hc-sa": 31.002, "sh-x": 28.0})
    assert summary(result)[0] == (
        "hc-sa and base share the best BLEU on test2016: 31.00."
    )


def test_less_may_be_better():
    result = result_of(
        {"base": 52.0, "hc-sa": 51.0, "sh-x": 55.0},
        "TER",
        bootstrap_holm={"hc-sa": 0.01, "sh-x": 0.01},
    )
    first, bootstrap, *_ = summary(result)
    assert first.startswith("hc-sa has the best TER on test2016: 51.00")
    assert "hc-sa (−1.00) is better; sh-x (+3.00) is worse." in bootstrap
    rank = Ranking.main(result)
    verdicts = [rank.verdict(name) for name in ("base", "hc-sa", "sh-x")]
    assert verdicts == ["baseline", "better", "worse"]


def test_one_seed_and_no_tests():
    first, *others = summary(result_of({"base": 31.0, "hc-sa": 31.5}, seeds=1))
    assert "31.50 (one seed)." in first
    assert first.endswith("this was not tested for significance.")
    assert not any(sentence.startswith("By the") for sentence in others)


def test_one_system():
    sentences = summary(result_of({"base": 31.0}))
    assert sentences == [
        "base reaches a BLEU on test2016 of 31.00 ± 0.20 (mean and standard deviation "
        "over two seeds). No other system has a score."
    ]


def test_no_scores_and_missing_runs():
    result = dataclasses.replace(made_up.comparison(), scores=(), missing=("base 2",))
    assert summary(result) == [
        "There are no scores yet.",
        "The comparison is not complete: one run has not ended.",
    ]


def test_what_is_worth_its_cost():
    result = result_of({"base": 31.0, "hc-sa": 31.5, "sh-x": 30.0})
    [worth] = summary(result)[1:]
    assert worth == (
        "On the front of BLEU and training time are sh-x and hc-sa: every other system "
        "is matched or beaten in both by one of them."
    )


def test_the_best_is_also_the_cheapest():
    result = result_of({"base": 31.0, "hc-sa": 31.5, "sh-x": 32.0})
    assert summary(result)[-1] == (
        "No other system is better than sh-x in BLEU or training time."
    )


@pytest.mark.parametrize(
    ("cost", "expected"),
    [
        ("seconds", ["sh-x", "hc-sa"]),
        ("sentences_per_second", ["sh-x", "hc-sa"]),
        ("memory_mib", ["base", "hc-sa"]),
    ],
)
def test_the_front(cost, expected):
    result = result_of({"base": 31.0, "hc-sa": 31.5, "sh-x": 30.0})
    assert Ranking.main(result).front(cost) == expected


def test_equal_systems_share_the_front():
    rank = Ranking.main(result_of({"base": 31.0, "hc-sa": 31.5, "sh-x": 31.5}))
    assert rank.front("updates") == ["hc-sa", "sh-x"]


def test_systems_are_ranked_from_the_best():
    result = made_up.comparison()
    assert list(Ranking(result, "test2017", "BLEU").scores) == ["sh-x", "hc-sa", "base"]
    assert list(Ranking(result, "test2017", "TER").scores) == ["base", "hc-sa", "sh-x"]
