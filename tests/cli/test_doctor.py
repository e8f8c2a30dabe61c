"""`kav doctor`: output, exit codes, and the doctor."""

import shutil

import pytest
import tensorflow as tf

from keras_attnvariants import backend
from keras_attnvariants.backend import compilation
from keras_attnvariants.cli import doctor
from keras_attnvariants.cli.doctor import DAMAGED
from keras_attnvariants.cli.doctor import NOTE
from keras_attnvariants.utils import machine
from tests.cli.conftest import check_error
from tests.cli.conftest import stdout


def test_the_environment(kav):
    output = stdout(kav("doctor"))
    assert "sentencepiece" in output and output.endswith("All is well.\n")


def test_lines_fit_into_eighty_columns(kav, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    lines = stdout(kav("doctor")).splitlines()
    assert max(map(len, lines)) <= 80
    assert any("pip install 'keras_attnvariants[" in line for line in lines)


def test_healthy_places(kav, corpus_folder, run_folder):
    model = run_folder / "averaged"
    output = stdout(kav("doctor", model))
    assert output.startswith(f"{model}: a model\n")
    assert f"What works:\n  kav translate --model {model}\n" in output
    languages = ("--source", "xx", "--target", "yy")
    assert "train" in stdout(kav("doctor", corpus_folder, *languages))


def test_damage_is_exit_code_one(kav, run_folder, tmp_path):
    model = shutil.copytree(run_folder / "best", tmp_path / "model")
    (model / "config.json").write_text("{}")
    result = kav("doctor", model)
    assert result.exit_code == 1
    assert "damaged" in result.stdout and "To do: " in result.stdout
    assert result.stdout.endswith("Damaged: 1.\n")
    (tmp_path / "pairs.tsv").write_bytes(b"")
    languages = ("--source", "xx", "--target", "yy")
    assert kav("doctor", tmp_path / "pairs.tsv", *languages).exit_code == 1


def test_nothing_to_examine(kav, tmp_path):
    check_error(kav("doctor", tmp_path), "Give the folder of a run")
    check_error(kav("doctor", tmp_path, "--source", "xx"), "--source and --target")


def test_versions_devices_and_extras():
    found = doctor.examine_environment(measure_precision=False)
    by_name = {finding.name: finding for finding in found.findings}
    assert not found.damaged
    assert by_name["tensorflow"].text.startswith(tf.__version__)
    assert {"sentencepiece", "sacrebleu", *doctor.EXTRAS} <= set(by_name)
    assert "tensorflow" in by_name["backend"].text
    assert "cpu" in by_name["devices"].text
    assert "precision" not in by_name


@pytest.mark.parametrize("exact", [True, False])
def test_consequences_of_the_processor(monkeypatch, exact):
    monkeypatch.setattr(machine, "processor_features", lambda: ["AVX2", "AMX"])
    monkeypatch.setattr(backend, "is_onednn_exact", lambda: exact)
    monkeypatch.setattr(backend, "sums_bfloat16_in_float32", lambda: exact)
    found = {finding.name: finding for finding in doctor._machine()}
    assert found["features"].text == "AVX2, AMX"
    assert ("refuse to translate" in found["int8"].text) is not exact
    assert ("partial sums" in found["bfloat16"].text) is not exact


def test_an_extra_needs_all_of_its_packages(monkeypatch):
    packages = [found.name for found in doctor.requirements("tune")]
    assert packages == ["keras-tuner", "tensorboard", "scikit-learn"]
    assert [found.name for found in doctor.requirements("jax")] == ["jax"]
    there = {"keras-tuner": "1.4.8", "tensorboard": "2.20.0", "scikit-learn": "1.7.1"}
    for name in there:
        without = {**there, name: None}
        monkeypatch.setattr(doctor, "installed", without.get)
        findings = {finding.name: finding for finding in doctor._extras()}
        assert findings["tune"].text == f"not installed: {name}; for kav tune"
        assert "keras_attnvariants[tune]" in findings["tune"].advice
    monkeypatch.setattr(doctor, "installed", there.get)
    [found] = [f for f in doctor._extras() if f.name == "tune"]
    assert found.text.startswith("keras-tuner 1.4.8, tensorboard 2.20.0")


def test_the_precision_is_measured_on_request(monkeypatch):
    monkeypatch.setattr(compilation, "bfloat16_cost", lambda: 1.5)
    monkeypatch.setattr(backend, "bfloat16_cost", lambda: 1.5)
    [*_, found] = doctor.examine_environment(measure_precision=True).findings
    assert found.text == "float32 is faster here: bfloat16 takes 1.50 times as long"


@pytest.mark.parametrize(
    ("name", "version", "phrase"),
    [
        ("tensorflow-text", "2.12.1", "tensorflow-text=="),
        ("sentencepiece", "0.2.0", "sentencepiece>=0.2.3 is needed"),
        ("keras", None, "not installed"),
    ],
)
def test_versions_that_do_not_go_together(name, version, phrase, monkeypatch):
    found = packages_with(monkeypatch, name, version)
    [finding] = [finding for finding in found if finding.state == DAMAGED]
    assert finding.name == name and phrase in finding.text and finding.advice


@pytest.mark.parametrize(
    ("name", "version", "phrase"),
    [
        ("keras", "99.1", "99.1 is newer than what was tested: <"),
        ("tensorflow-text", None, "not installed; for texts"),
    ],
)
def test_versions_that_may_go_together(name, version, phrase, monkeypatch):
    found = packages_with(monkeypatch, name, version)
    [finding] = [finding for finding in found if finding.state == NOTE]
    assert finding.name == name and phrase in finding.text
    assert f"pip install '{name}" in finding.advice
    assert all(finding.state != DAMAGED for finding in found)


def packages_with(monkeypatch, name, version):
    """The findings about packages, if one of them were of another version."""
    found = doctor.installed
    monkeypatch.setattr(
        doctor, "installed", lambda each: version if each == name else found(each)
    )
    return list(doctor._packages())
