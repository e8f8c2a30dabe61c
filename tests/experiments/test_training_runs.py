"""Settings with which the runs of a comparison are trained."""

from dataclasses import replace

import pytest

from keras_attnvariants.data import Tokenizer
from keras_attnvariants.data.model_folders import TOKENIZER
from keras_attnvariants.experiments.comparison import check_system
from keras_attnvariants.experiments.comparison import open_folder
from keras_attnvariants.experiments.comparison import write_json
from keras_attnvariants.experiments.comparison_folder import SETTINGS
from keras_attnvariants.experiments.comparison_folder import ComparisonFolder
from keras_attnvariants.experiments.comparison_folder import Run
from keras_attnvariants.experiments.comparison_folder import RunRecord
from keras_attnvariants.experiments.settings import VocabularySettings
from keras_attnvariants.experiments.settings import read_settings
from keras_attnvariants.experiments.training_runs import model_at
from keras_attnvariants.experiments.training_runs import train
from keras_attnvariants.experiments.training_runs import training_settings
from keras_attnvariants.training import DifferentSettingsError
from keras_attnvariants.training import load_run
from keras_attnvariants.training.run_settings import CONFIG
from keras_attnvariants.training.run_settings import (
    read_settings as read_settings_of_run,
)
from keras_attnvariants.training.state import number_of
from keras_attnvariants.utils.files import DamagedFolderError
from keras_attnvariants.utils.records import write_record
from tests.experiments.toy import SIZES
from tests.experiments.toy import toy_file


def test_a_budget_of_tokens_counts_all_batches_of_an_update(tmp_path, corpus_folder):
    changes = {
        "updates = 4": f"tokens = {512 * 40}",
        "batch_tokens = 512": "batch_tokens = 512\naccumulate = 4",
    }
    settings = read_settings(toy_file(tmp_path, corpus_folder, **changes))
    folder = ComparisonFolder(settings, tmp_path)
    system = settings.systems[0]
    batch_tokens, training = training_settings(folder, system)
    assert batch_tokens == 512 and training["accumulate"] == 4
    assert training["steps"] == 10 and training["validate_every"] == 5


def test_an_update_takes_a_batch(tmp_path, corpus_folder):
    changes = {"updates = 4": "tokens = 512", "batch_tokens = 512": "accumulate = 0"}
    settings = read_settings(toy_file(tmp_path, corpus_folder, **changes))
    folder = ComparisonFolder(settings, tmp_path)
    with pytest.raises(ValueError, match="`accumulate` must be a positive integer"):
        training_settings(folder, settings.systems[0])


@pytest.fixture
def going_on(run_folder, corpus_folder, tmp_path):
    """A comparison of a trained model that goes on with a new one."""
    systems = f"""
[systems.base]
preset = "kav/base/bible"

[systems.tuned]
preset = "kav/hc-sa/bible"
continue_from = "{run_folder}"
"""
    changes = {SIZES: "[options]\nnum_heads = 2\n"}
    path = toy_file(tmp_path, corpus_folder, systems, **changes)
    folder = tmp_path / "folder"
    folder.mkdir()
    return ComparisonFolder(read_settings(path), folder)


def test_all_have_the_vocabulary_of_the_model_that_one_goes_on_from(
    going_on, run_folder
):
    model, tokenizer = load_run(run_folder)
    base, tuned = going_on.settings.systems
    assert going_on.vocabulary_size() == tokenizer.vocabulary_size
    assert going_on.options(tuned)["hidden_dim"] == model.get_config()["hidden_dim"]
    assert "hidden_dim" not in going_on.options(base)
    assert "continue_from" not in going_on.settings_of(base)
    open_folder(going_on)
    assert Tokenizer.load(going_on.path / TOKENIZER).sha256 == tokenizer.sha256


def test_each_run_goes_on_from_the_model_of_its_seed(going_on):
    base, tuned = going_on.settings.systems
    assert Run(going_on, base, 2).start is None
    settings = replace(tuned, continue_from="runs/base/seed-{seed}")
    assert Run(going_on, settings, 2).start.model == "runs/base/seed-2"


def test_a_vocabulary_beside_that_of_a_model_is_refused(going_on):
    vocabulary = VocabularySettings(size=50)
    settings = replace(going_on.settings, vocabulary=vocabulary)
    with pytest.raises(ValueError, match=r"leave out \[vocabulary\]"):
        ComparisonFolder(settings, going_on.path).vocabulary_size()


def test_a_system_goes_on_from_the_same_model_alone(going_on):
    tuned = going_on.settings.systems[1]
    runs = going_on.system_folder(tuned)
    (runs / "seed-1").mkdir(parents=True)
    (runs / "seed-1" / CONFIG).write_text("{}")
    write_json(runs / SETTINGS, going_on.settings_of(tuned) | {"continue_from": "0"})
    with pytest.raises(DifferentSettingsError, match="`continue_from`"):
        open_folder(going_on)


def test_a_model_that_is_not_there(going_on):
    system = replace(going_on.settings.systems[1], continue_from="kav/base/tatoeba")
    with pytest.raises(ValueError, match=r"System 'tuned' does not build.*tatoeba-en"):
        check_system(going_on, system)


@pytest.mark.slow
def test_a_run_begins_with_the_weights_of_the_model(going_on):
    open_folder(going_on)
    tuned = going_on.settings.systems[1]
    run = going_on.first_run(tuned)
    train(run, lambda share, text: None)
    data = read_settings_of_run(run.path)["training"]["data"]
    assert data["from_model"] == going_on.settings_of(tuned)["continue_from"]


def trained(tmp_path, corpus_folder, **changes):
    """A run of the baseline, and the numbers of the validations it has kept."""
    path = toy_file(tmp_path, corpus_folder, **changes)
    run = ComparisonFolder(read_settings(path), tmp_path).runs()[0]
    open_folder(run.folder)
    write_record(run.record_path, RunRecord(train(run, lambda share, text: None)))
    return run, [number_of(path) for path in (run.path / "snapshots").iterdir()]


@pytest.mark.slow
def test_the_last_point_is_the_last_update_and_others_are_not_kept(
    tmp_path, corpus_folder
):
    changes = {
        "updates = 4": "updates = 5",
        "examples = 2": "examples = 2\npoints = 1",
    }
    run, kept = trained(tmp_path, corpus_folder, **changes)
    assert kept == [3]  # of two, two and one updates
    model_at(run, 1.0)
    with pytest.raises(DamagedFolderError, match="no weights at 33 % of the budget"):
        model_at(run, 1 / 3)


@pytest.mark.slow
def test_a_run_that_ends_before_its_first_point_has_weights_for_it(
    tmp_path, corpus_folder
):
    changes = {
        "updates = 4\nvalidations = 2": "updates = 6\nvalidations = 6",
        "learning_rate = 1e-2": "learning_rate = 1e-30\npatience = 1",
        "examples = 2": "examples = 2\npoints = 1",
    }
    run, kept = trained(tmp_path, corpus_folder, **changes)
    assert kept == [2]
    model_at(run, 1.0)
