"""The tables and figures of a comparison for an article."""

import lzma
import re
from dataclasses import replace
from pathlib import Path

import pytest

from keras_attnvariants.experiments import ComparisonResult
from keras_attnvariants.experiments.results import PointResult
from tests.recipes.conftest import module_of

RESULTS = Path(__file__).parents[2] / "docs" / "comparisons" / "multi30k.json.xz"


@pytest.fixture
def results(tmp_path) -> Path:
    path = tmp_path / "results.json"
    path.write_bytes(lzma.decompress(RESULTS.read_bytes()))
    return path


def test_each_paper_has_a_table_and_a_figure(recipe, results, tmp_path):
    output = tmp_path / "article"
    recipe("article.py", results, output)
    papers = {"you2020", "rosendahl2021", "nguyen2018", "cs287", "loem2022"}
    assert {path.stem for path in output.glob("*.tex")} == papers
    assert {path.stem for path in output.glob("*.pdf")} == papers
    assert (output / "cs287.pdf").read_bytes().startswith(b"%PDF")


def test_a_table_has_scores_differences_and_those_of_the_paper(
    recipe, results, tmp_path
):
    recipe("article.py", results, tmp_path)
    text = (tmp_path / "you2020.tex").read_text("utf-8")
    rows = re.findall(r"^(\S+) & (.*) \\\\$", text, re.MULTILINE)
    assert [name for name, _ in rows] == ["system", "base", "hc-sa", "sh-x", "hc-all"]
    hc_all = dict(rows)["hc-all"].split(" & ")
    assert hc_all[1] == r"$17.71 \pm 1.44$"
    assert hc_all[2].startswith("$-7.49$ [$")
    assert hc_all[3:] == ["$< 0.001$", "$-8.9$"]
    columns = re.search(r"begin\{tabular\}\{(\w+)\}", text)[1]
    assert len(columns) == len(hc_all) + 1
    # What a paper has of its development set alone.
    text = (tmp_path / "loem2022.tex").read_text("utf-8")
    assert re.search(r"^concatenated-ngram .*& \$-0\.6\$ ", text, re.MULTILINE)


def test_the_figure_has_the_points_of_the_training(results):
    article = module_of("article")
    result = ComparisonResult.read(results)
    systems = {"hc-sa": 0.3, "sh-x": -1.8}
    axes = article.figure(result, systems).axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["hc-sa", "sh-x"]
    bleu = tuple(each for each in result.differences if each.metric == "BLEU")
    points = tuple(PointResult("test2016", share, (), bleu) for share in (0.5, 1.0))
    axes = article.figure(replace(result, points=points), systems).axes[0]
    drawn = {line.get_label(): list(line.get_xdata()) for line in axes.lines}
    assert drawn["hc-sa"] == drawn["sh-x"] == [50.0, 100.0]


@pytest.fixture
def compared(results):
    """Systems of You et al. with the difference of each, after some changes."""
    article, result = module_of("article"), ComparisonResult.read(results)

    def systems(**changes):
        return article.systems_of(replace(result, **changes), "you2020")

    return result, systems


def test_the_difference_of_a_paper_is_to_the_baseline_of_the_comparison(compared):
    result, systems = compared
    base, hc_sa = result.system("base"), result.system("hc-sa")
    renamed = [replace(row, system="base") for row in result.differences]
    found = systems(baseline="hc-sa", systems=(base, hc_sa), differences=renamed)
    assert found == {"base": pytest.approx(-0.3)}


def test_other_sizes_of_the_baseline_are_in_no_paper(compared):
    result, systems = compared
    base, hc_sa = result.system("base"), result.system("hc-sa")
    wide = replace(base, name="wide")
    renamed = [replace(row, system="wide") for row in result.differences]
    differences = (*result.differences, *renamed)
    found = systems(systems=(base, wide, hc_sa), differences=differences)
    assert list(found) == ["hc-sa"]
    assert systems(systems=(base, wide), differences=differences) == {}


def test_systems_without_a_run_are_left_out(compared):
    result, systems = compared
    finished = [row for row in result.differences if row.system != "hc-sa"]
    assert list(systems(differences=finished)) == ["sh-x", "hc-all"]


def test_a_title_of_two_lines_is_one_comment(results):
    article, result = module_of("article"), ComparisonResult.read(results)
    text = article.table(replace(result, title="One\ntwo"), "you2020", {})
    assert text.startswith("% One two; ")
