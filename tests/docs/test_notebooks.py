"""The notebooks: valid, stored with what they show, listed, and they run."""

import json
import re

import nbformat
import pytest

from docs import run_notebooks
from tests.docs import pages

NOTEBOOKS = run_notebooks.NOTEBOOKS
EACH = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
# In bytes.
LARGEST = 300_000
# Homes, temporary folders and checkouts; links of pages do not begin with a slash.
PLACE = re.compile(
    r"(?<![\w.:/<])/(home|root|tmp|Users|work|var|usr|private)/|site-packages"
)


@EACH
def test_a_notebook_is_valid_and_small(path):
    nbformat.validate(nbformat.read(path, as_version=4))
    assert path.stat().st_size < LARGEST
    assert not path.name.startswith(".")


@EACH
def test_all_cells_ran_in_order_without_a_complaint(path):
    code = [x for x in nbformat.read(path, 4).cells if x.cell_type == "code"]
    counts = [cell.execution_count for cell in code]
    assert counts == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell.outputs]
    assert outputs
    assert {output.output_type for output in outputs} <= {
        "display_data",
        "execute_result",
        "stream",
    }
    assert all(x.name == "stdout" for x in outputs if x.output_type == "stream")


@EACH
def test_outputs_tell_no_places_of_the_machine(path):
    notebook = nbformat.read(path, 4)
    assert not PLACE.search(json.dumps(notebook.cells))
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    assert notebook.metadata.language_info == {"name": "python"}
    # Times of execution.
    assert all(not cell.metadata for cell in notebook.cells)


def test_notebooks_are_in_the_navigation_and_in_the_list_of_pages():
    index = (pages.DOCS / "index.md").read_text("utf-8")
    listed = re.findall(r"^notebooks/(\w+)$", index, re.M)
    assert listed == [path.stem for path in NOTEBOOKS]
    text = (pages.DOCS / "README.md").read_text("utf-8")
    assert re.findall(r"\]\(notebooks/(\w+)\.ipynb\)", text) == listed


@EACH
def test_links_of_a_notebook_lead_somewhere(path):
    cells = nbformat.read(path, 4).cells
    text = "\n".join(x.source for x in cells if x.cell_type == "markdown")
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text)
    assert targets
    assert [x for x in targets if not (path.parent / x).exists()] == []


@pytest.mark.slow
@EACH
def test_a_notebook_runs(path):
    run_notebooks.run(path)
