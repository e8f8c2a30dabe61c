"""The benchmark of the input pipeline, with a model and a corpus of no size."""

import json
import time

import numpy as np
import pytest
import tensorflow as tf
from typer.testing import CliRunner

from keras_attnvariants.data import pipeline as data
from tests.data.toy import toy_pairs
from tests.data.toy import write_pairs


@pytest.fixture
def pipeline(benchmark, monkeypatch, tmp_path):
    monkeypatch.setenv("KAV_CACHE", str(tmp_path / "cache"))
    return benchmark("pipeline")


@pytest.fixture
def measured(pipeline, tmp_path):
    """Ratios by program."""
    write_pairs(tmp_path / "toy", "train", toy_pairs(120))

    def ratios():
        file = tmp_path / "numbers.json"
        sizes = {"width": 8, "layers": 1, "vocabulary-size": 80, "batch-tokens": 256}
        options = sizes | {"updates": 4, "runs": 2, "data": tmp_path / "toy"}
        arguments = [f"--{name}={value}" for name, value in options.items()]
        result = CliRunner().invoke(pipeline.app, [*arguments, f"--output={file}"])
        assert result.exit_code == 0, result.output
        return {
            row["batches"]: row["ratio"] for row in json.loads(file.read_text())["rows"]
        }

    return ratios


def test_a_ratio_is_the_median_over_rounds(pipeline):
    seconds = {pipeline.MEMORY: [1.0, 2.0, 4.0], pipeline.PIPELINE: [3.0, 2.0, 8.0]}
    first, second = pipeline.rows_of(seconds, updates=4)
    assert (first["ratio"], first["bar"]) == (1.0, None)
    assert (second["ratio"], second["bar"]) == (2.0, 1.03)
    assert second["milliseconds per update"] == 750


def test_both_programs_see_the_same_batches(pipeline):
    made, seen = [], []

    def make(number):
        made.append(int(number))
        return np.full(3, number)

    class Model:
        def fit(self, source, **options):
            seen.append([batch.tolist() for batch in source.as_numpy_iterator()])

    dataset = tf.data.Dataset.counter().map(
        lambda number: tf.numpy_function(make, [number], tf.int64)
    )
    programs = pipeline.programs(Model(), dataset, updates=4)
    assert made == [0, 1, 2, 3]
    programs[pipeline.MEMORY]()
    assert made == [0, 1, 2, 3]
    programs[pipeline.PIPELINE]()
    assert made == [0, 1, 2, 3] * 2
    assert seen[0] == seen[1] == [[i] * 3 for i in range(4)]


def test_a_slow_pipeline_is_seen(pipeline, measured, monkeypatch):
    make = data._padded_arrays

    def slow(*arguments):
        time.sleep(0.2)
        return make(*arguments)

    monkeypatch.setattr(data, "_padded_arrays", slow)
    ratios = measured()
    assert ratios[pipeline.MEMORY] == 1
    assert ratios[pipeline.PIPELINE] > 1.5
