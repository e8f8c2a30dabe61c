"""Trainings of all seeds side by side, scored by `kav compare`."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from keras_attnvariants.data import BatchPlan
from keras_attnvariants.experiments import Comparison
from keras_attnvariants.training import load_run
from tests.experiments.toy import SIZES
from tests.experiments.toy import SYSTEMS
from tests.experiments.toy import toy_file
from tests.recipes.conftest import RECIPES
from tests.recipes.conftest import module_of

RECIPE = "train_on_gpu.py"


@pytest.mark.slow
def test_its_runs_are_those_of_a_comparison(recipe, tmp_path, corpus_folder):
    pytest.importorskip("jax")
    points = {"examples = 2": "examples = 2\npoints = 2", "runs = 1": "runs = 0"}
    shown = f'[shown]\ndata = "{corpus_folder}"\nsplit = "validation"\n'
    file = toy_file(tmp_path, corpus_folder, f"{SYSTEMS}{shown}", **points)
    jobs, folder = tmp_path / "jobs", tmp_path / "comparison"
    where = ("--folder", folder, "--jobs", jobs)
    recipe(RECIPE, "prepare", file, *where)
    systems = ("base", "hc")
    command = [sys.executable, RECIPES / RECIPE, "train", *systems, "--jobs", jobs]
    environment = os.environ | {
        "KERAS_BACKEND": "jax",
        "PYTHONPATH": ":".join(sys.path),
    }
    subprocess.run(command, env=environment, check=True)
    told = recipe(RECIPE, "keep", file, *where)
    assert told.split("\n")[:2] == ["base 1", "base 2"]
    text = file.read_text("utf-8")
    file.write_text(text.replace("learning_rate = 1e-2", "learning_rate = 2e-2"))
    with pytest.raises(ValueError, match=r"`training.learning_rate` to 0.01$"):
        recipe(RECIPE, "keep", file, *where)
    file.write_text(text)
    records = tmp_path / "records"
    result = Comparison.from_file(file, folder).run(score_only=True, records=records)
    assert {run.updates for run in result.runs} == {4}
    assert all("2 runs side by side" in run.processor for run in result.runs)
    assert {point.share for point in result.points} == {0.5, 1.0}
    assert all(run.curve for run in result.runs)
    assert len(list(records.glob("*.xz"))) == 4


def test_runs_begin_with_the_models_that_were_copied(
    recipe, tmp_path, corpus_folder, run_folder, monkeypatch
):
    pytest.importorskip("jax")
    system = (
        f'[systems.base]\npreset = "kav/hc-sa/bible"\ncontinue_from = "{run_folder}"'
    )
    sizes = {SIZES: "[options]\nnum_heads = 2\n"}
    file = toy_file(tmp_path, corpus_folder, system, **sizes)
    jobs = tmp_path / "jobs"
    recipe(RECIPE, "prepare", file, "--folder", tmp_path / "comparison", "--jobs", jobs)
    common = json.loads((jobs / "jobs.json").read_text())
    base = common["systems"]["base"]
    starts = [jobs / start for start in base["starts"]]
    module = module_of("train_on_gpu")
    monkeypatch.setattr(module.SideBySide, "compiled", lambda self: {})
    with np.load(jobs / "arrays.npz") as arrays:
        runs = module.SideBySide(base, common, dict(arrays), [starts[0], None])
    begun, new = (runs.unflat(weights)[0] for weights in runs.start[0])
    trained, _ = load_run(run_folder)
    [embeddings] = [v for v in trained.trainable_variables if v.shape == begun.shape]
    np.testing.assert_array_equal(begun, embeddings)
    assert np.abs(new - begun).max() > 0.01


def test_seeds_see_their_own_batches_in_one_order_of_shapes():
    module = module_of("train_on_gpu")
    lengths = np.random.default_rng(0).integers(1, 40, (2, 500))
    plans = [BatchPlan(*lengths, 256, seed) for seed in (1, 2)]
    epoch = plans[0].num_batches
    order, pairs = module.aligned(plans, 2 * epoch)
    for seed in range(2):
        for start in (0, epoch):
            seen = pairs[start : start + epoch, seed]
            assert sorted(seen[seen >= 0]) == list(range(500))
    for kind, of_seeds in zip(order, pairs, strict=True):
        longest = [lengths[:, own[own >= 0]].max(1) for own in of_seeds]
        assert (np.max(longest, axis=0) <= module.SHAPES[kind]).all()
    first = [plans[0].batch(step)[1] for step in range(epoch)]
    assert all(
        (own[0][own[0] >= 0] == batch).all()
        for own, batch in zip(pairs, first, strict=False)
    )


def test_the_lower_loss_decides_for_each_run():
    module = module_of("train_on_gpu")
    pytest.importorskip("jax")
    first = np.array([1.0, 3.0]), np.array([[1.0], [3.0]])
    second = np.array([2.0, 2.0]), np.array([[2.0], [2.0]])
    losses, weights = module.better(module.better(None, first), second)
    assert losses.tolist() == [1.0, 2.0]
    assert np.ravel(weights).tolist() == [1.0, 2.0]
