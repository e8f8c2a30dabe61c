"""The benchmark of whole processes that translate a file, without the processes."""

import json

import pytest
from typer.testing import CliRunner

SECONDS = {"ct2_file.py": 2.0, "--model": 5.0, "--saved-model": 4.0}


@pytest.mark.parametrize("precision", ["", "int8"])
def test_the_table(benchmark, monkeypatch, tmp_path, precision):
    script = benchmark("translate_file")
    exported = []

    def export(model, path, *options):
        exported.append(options)
        return path

    def seconds_of(*command: str) -> float:
        text = " ".join(command)
        return next(own for part, own in SECONDS.items() if part in text)

    monkeypatch.setattr(script, "export", export)
    monkeypatch.setattr(script, "seconds_of", seconds_of)
    monkeypatch.setattr(script, "uses_avx512", lambda: False)
    monkeypatch.setattr(script, "use_one_core", lambda: None)
    lines, file = tmp_path / "lines.en", tmp_path / "numbers.json"
    lines.write_text("A dog.\nA cat.\n")
    options = ["--output", str(file)]
    options += ["--precision", precision] if precision else []
    result = CliRunner().invoke(script.app, [str(lines), *options])
    assert result.exit_code == 0, result.output
    peer, model, saved, *others = json.loads(file.read_text())["rows"]
    assert [len(others), len(exported)] == ([1, 3] if precision else [0, 2])
    assert peer["of CTranslate2"] == 1 and model["of CTranslate2"] == 0.4
    assert saved["of CTranslate2"] == 0.5 and saved["bar"] == 0.7
    assert saved["lines per CPU second"] == 0.5 and model["bar"] is None


def test_every_run_takes_its_own_time(benchmark):
    script = benchmark("translate_file")
    assert script.seconds_of("-c", "sum(range(10**7))") > script.seconds_of("-c", "")
