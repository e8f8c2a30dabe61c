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
