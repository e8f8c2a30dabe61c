"""Tables as LaTeX and CSV: escaped, aligned, and with marks of significance."""

import csv
import dataclasses
import io
import shutil
import subprocess

import pytest
from rich.console import Console

from keras_attnvariants.experiments import result_files
from tests.experiments.made_up import SYSTEMS
from tests.experiments.made_up import comparison

NASTY = r"""=SUM(A1) 50% & <script>_#$^~{}\ end"""


def nasty():
    """A comparison whose title and system contain commands of other formats."""
    result = comparison(title=NASTY)
    first, *others = result.systems
    odd = dataclasses.replace(first, name=NASTY)
    return dataclasses.replace(result, systems=(odd, *others))


def test_latex_has_a_row_a_system_and_as_many_cells_as_columns():
    text = result_files.latex(comparison())
    [columns] = [line for line in text.split("\n") if "begin{tabular}" in line]
    assert columns == r"\begin{tabular}{lrrrrrrr}"  # 2 test sets x 3 metrics, and size
    rows = [line for line in text.split("\n") if line.startswith(SYSTEMS)]
    assert len(rows) == 3
    assert all(row.count(" & ") == 7 and row.endswith(r" \\") for row in rows)
    assert rows[0].startswith(r"base & 1.58 & 31.00 $\pm$ 0.28 & ")
    # Dunnett's test is 0.04, the bootstrap 0.02.
    assert r"31.50 $\pm$ 0.28$^{*}$$^{\dagger}$" in rows[1]
    assert "With 80 % power, Dunnett's test finds 1.25 BLEU on test2016." in text
    assert r"\toprule" in text and r"\bottomrule" in text


def test_latex_escapes_names():
    text = result_files.latex(nasty())
    [row] = [line for line in text.split("\n") if line.startswith("=SUM")]
    name = (
        r"=SUM(A1) 50\% \& \textless{}script\textgreater{}\_\#\$"
        r"\textasciicircum{}\textasciitilde{}\{\}\textbackslash{} end"
    )
    assert row.startswith(f"{name} & ")
    assert result_files.escaped("two\nlines") == "two lines"


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs LaTeX")
def test_latex_can_be_set(tmp_path):
    document = (
        r"\documentclass{article}\usepackage{booktabs}\begin{document}"
        f"\n{result_files.latex(nasty())}\n"
        r"\end{document}"
    )
    (tmp_path / "table.tex").write_text(document)
    command = ["pdflatex", "-halt-on-error", "table.tex"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)


def test_missing_scores_are_dashes():
    result = comparison(scores=(), differences=())
    assert f"base & 1.58{6 * ' & --'} \\\\" in result_files.latex(result)
    assert result_files.plain_cell(result, "base", "test2016") == "–"


def test_csv_files_open_in_a_spreadsheet(tmp_path, monkeypatch):
    page = "keras_attnvariants.experiments.page.write_page"
    monkeypatch.setattr(page, lambda *arguments: None)
    result = nasty()
    result_files.write_all(result, tmp_path)
    tables = {}
    for path in tmp_path.rglob("*.csv"):
        with path.open(encoding="utf-8", newline="") as file:
            tables[path.name] = list(csv.reader(file))
        widths = {len(row) for row in tables[path.name]}
        assert len(widths) == 1, path
    assert tables["systems.csv"][1][0] == f"'{NASTY}"
    head, *rows = tables["scores.csv"]
    assert len(rows) == len(result.scores)
    assert float(rows[0][head.index("mean")]) == result.scores[0].mean
    assert "seed 2" in head
    head, *rows = tables["runs.csv"]
    assert head[:3] == ["system", "seed", "updates"]
    assert len(rows) == len(result.runs)
    head, *rows = tables["systems.csv"]
    assert "published difference bleu en-de" in head
    assert rows[1][head.index("changes")] == "dropout 0.3"
    assert (tmp_path / "analyses" / "01-locality-base.csv").is_file()


def test_the_table_on_the_terminal_or_in_a_notebook_shows_names_as_they_are():
    console = Console(width=120, record=True, file=io.StringIO())
    result = comparison()
    odd = dataclasses.replace(result.systems[0], name="[bold]<b>base")
    result = dataclasses.replace(result, systems=(odd,))
    console.print(result)
    assert "[bold]<b>base" in console.export_text()
    assert "[bold]&lt;b&gt;base" in result._repr_mimebundle_((), ())["text/html"]
