"""Tables as CSV and on the terminal."""

import csv
import dataclasses
import io

from rich.console import Console

from keras_attnvariants.experiments import result_files
from tests.experiments.made_up import comparison

NASTY = r"""=SUM(A1) 50% & <script>_#$^~{}\ end"""


def nasty():
    """A comparison whose title and system contain commands of other formats."""
    result = comparison(title=NASTY)
    first, *others = result.systems
    odd = dataclasses.replace(first, name=NASTY)
    return dataclasses.replace(result, systems=(odd, *others))


def test_missing_scores_are_dashes():
    result = comparison(scores=(), differences=())
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
