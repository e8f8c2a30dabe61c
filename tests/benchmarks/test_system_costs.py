"""The benchmark of the systems of comparisons, with tiny ones."""

import json

from typer.testing import CliRunner

SIZES = """
num_layers = 1
hidden_dim = 16
intermediate_dim = 16
num_heads = 4
"""


def comparison(path, *systems: str) -> str:
    """Writes a comparison of systems with presets of their names."""
    names = "".join(
        f'[systems.{name}]\npreset = "kav/{name}/multi30k"\n' for name in systems
    )
    path.write_text(
        f'baseline = "{systems[0]}"\nseeds = [1]\n'
        '[corpus]\ndata = "multi30k"\nsource = "en"\ntarget = "de"\n'
        '[test_sets]\ntest2016 = "test2016"\n[budget]\nupdates = 1\n'
        f"[vocabulary]\nsize = 50\n[options]{SIZES}{names}"
    )
    return str(path)


def test_tiny_systems_of_two_comparisons(benchmark, tmp_path):
    costs = benchmark("system_costs")
    file = tmp_path / "numbers.json"
    comparisons = [
        comparison(tmp_path / "first.toml", "base", "hc-sa"),
        comparison(tmp_path / "second.toml", "base", "sh-x"),
    ]
    options = ["--batch", "2", "--runs", "1", "--output", str(file)]
    result = CliRunner().invoke(costs.app, [*comparisons, *options])
    assert result.exit_code == 0, result.output
    first, *others = rows = json.loads(file.read_text())["rows"]
    assert [row["system"] for row in rows] == ["base", "hc-sa", "sh-x"]
    assert first["ratio, batch 2"] == 1
    assert all(row["parameters"] < first["parameters"] for row in others)
    assert all(0 < row["size, MB"] < first["size, MB"] for row in others)
    assert all(row["ms, batch 2"] > 0 and row["memory, MB"] > 0 for row in rows)
