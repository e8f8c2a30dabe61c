"""The usual files of a repository say the same as the package and the Makefile."""

import re

import pytest
import yaml

import keras_attnvariants as kav
from tests.docs import pages

ROOT = pages.REPOSITORY
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def read(name):
    """A YAML file of the repository."""
    return yaml.safe_load((ROOT / name).read_text("utf-8"))


def test_the_citation_is_of_this_version_and_names_the_papers_of_the_readme():
    citation = read("CITATION.cff")
    assert citation["version"] == kav.__version__
    readme = " ".join(pages.README.read_text("utf-8").split())
    papers = citation["references"]
    assert len(papers) == 5
    for paper in papers:
        title = paper["title"].removeprefix("A ")
        assert title in readme and str(paper["year"]) in readme
        assert all(author["family-names"] in readme for author in paper["authors"])


def test_hooks_are_the_checks_of_make_lint():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    [lint] = re.findall(r"^lint:.*\n((?:\t.+\n)+)", makefile, re.M)
    commands = [
        line.strip().replace("$(BIN)", ".venv/bin").removesuffix(" .")
        for line in lint.splitlines()
    ]
    [repository] = read(".pre-commit-config.yaml")["repos"]
    assert [hook["entry"] for hook in repository["hooks"]] == commands


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_run_targets_of_the_makefile_with_few_rights(path):
    workflow = yaml.safe_load(path.read_text("utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for target in re.findall(r"\bmake ([\w-]+)", path.read_text("utf-8")):
        assert re.search(rf"^{target}:", makefile, re.M), target


def test_the_oldest_and_the_newest_python_are_tested():
    setup = (ROOT / "setup.cfg").read_text("utf-8")
    versions = re.findall(r"Python :: (3\.\d+)$", setup, re.M)
    matrix = read(".github/workflows/ci.yml")["jobs"]["test"]["strategy"]["matrix"]
    assert matrix["python"] == [versions[0], versions[-1]]


def test_the_oldest_releases_that_are_tested_are_the_oldest_that_are_allowed():
    setup = (ROOT / "setup.cfg").read_text("utf-8")
    allowed = dict(re.findall(r"^    ([\w-]+)>=(\d+\.\d+)", setup, re.M))
    tested = (ROOT / "tests" / "oldest.txt").read_text("utf-8")
    for name, release in re.findall(r"^([\w-]+)==(\d+\.\d+)", tested, re.M):
        assert allowed[name] == release, name


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_forms_ask_something(path):
    form = yaml.safe_load(path.read_text("utf-8"))
    if path.stem != "config":
        assert {"name", "description", "body"} < set(form)
        assert all(field["attributes"]["label"] for field in form["body"])


def test_the_readme_lists_every_recipe_that_runs():
    readme = pages.README.read_text("utf-8")
    recipes = (ROOT / "recipes").glob("*.py")
    programs = {x.name for x in recipes if "__main__" in x.read_text("utf-8")}
    assert programs == {name for name in programs if f"(recipes/{name})" in readme}
