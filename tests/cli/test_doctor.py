"""`kav doctor`: what it prints, and its exit codes."""

import shutil

from tests.cli.conftest import check_error
from tests.cli.conftest import stdout


def test_the_environment(kav):
    output = stdout(kav("doctor"))
    assert "sentencepiece" in output and output.endswith("All is well.\n")


def test_healthy_places(kav, corpus_folder, run_folder):
    model = run_folder / "averaged"
    output = stdout(kav("doctor", model))
    assert output.startswith(f"{model}: a model\n")
    assert f"What works:\n  kav translate --model {model}\n" in output
    assert "train.xx" in stdout(kav("doctor", corpus_folder))
    assert "not fetched yet" in stdout(kav("doctor", "multi30k"))


def test_damage_is_exit_code_one(kav, run_folder, tmp_path):
    model = shutil.copytree(run_folder / "best", tmp_path / "model")
    (model / "config.json").write_text("{}")
    result = kav("doctor", model)
    assert result.exit_code == 1
    assert "damaged" in result.stdout and "To do: " in result.stdout
    assert result.stdout.endswith("Damaged: 1.\n")
    (tmp_path / "pairs.tsv").write_bytes(b"")
    assert kav("doctor", tmp_path / "pairs.tsv").exit_code == 1


def test_nothing_to_examine(kav, tmp_path):
    check_error(kav("doctor", tmp_path), "Give the folder of a run")
