"""What is installed, and whether it goes together."""

import pytest
import tensorflow as tf

from keras_attnvariants.cli import environment
from keras_attnvariants.cli.health import DAMAGED


def test_versions_devices_and_extras():
    found = environment.examine_environment(measure_precision=False)
    by_name = {finding.name: finding for finding in found.findings}
    assert found.is_healthy
    assert by_name["tensorflow"].text == tf.__version__
    assert {*environment.NEEDED, *environment.EXTRAS} <= set(by_name)
    assert "tensorflow" in by_name["backend"].text
    assert "CPU" in by_name["devices"].text
    assert "precision" not in by_name


@pytest.mark.parametrize("exact", [True, False])
def test_what_follows_from_the_processor(monkeypatch, exact):
    monkeypatch.setattr(environment, "processor_features", lambda: ["AVX2", "AMX"])
    monkeypatch.setattr(environment.backend, "is_onednn_exact", lambda: exact)
    found = {finding.name: finding for finding in environment._machine()}
    assert found["processor"].text.endswith(", AVX2, AMX")
    assert ("refuse to translate" in found["int8"].text) is not exact


def test_an_extra_needs_all_of_its_packages(monkeypatch):
    assert environment.packages_of("tune") == [
        "keras-tuner",
        "tensorboard",
        "scikit-learn",
    ]
    assert environment.packages_of("jax") == ["jax"]
    there = {"keras-tuner": "1.4.8", "tensorboard": "2.20.0", "scikit-learn": "1.7.1"}
    for name in there:
        without = {**there, name: None}
        monkeypatch.setattr(environment, "installed", without.get)
        findings = {finding.name: finding for finding in environment._extras()}
        assert findings["tune"].text == f"not installed: {name}; for kav tune"
        assert "keras_attnvariants[tune]" in findings["tune"].advice
    monkeypatch.setattr(environment, "installed", there.get)
    [found] = [f for f in environment._extras() if f.name == "tune"]
    assert found.text.startswith("keras-tuner 1.4.8, tensorboard 2.20.0")


def test_the_precision_is_measured_on_request(monkeypatch):
    monkeypatch.setattr(environment, "faster_precision", lambda: "float32")
    found = environment.examine_environment(measure_precision=True)
    assert found.findings[-1].text == "float32 is faster here"


@pytest.mark.parametrize(
    ("name", "version", "phrase"),
    [
        ("tensorflow-text", "2.12.1", "another TensorFlow"),
        ("sentencepiece", "0.2.0", "crafted models"),
        ("keras", None, "not installed"),
    ],
)
def test_what_does_not_go_together(name, version, phrase, monkeypatch):
    found_version = environment.installed
    monkeypatch.setattr(
        environment,
        "installed",
        lambda package: version if package == name else found_version(package),
    )
    found = environment.examine_environment(measure_precision=False)
    [finding] = [finding for finding in found.findings if finding.state == DAMAGED]
    assert finding.name == name and phrase in finding.text and finding.advice
