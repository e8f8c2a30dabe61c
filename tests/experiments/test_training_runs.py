"""Settings with which the runs of a comparison are trained."""

from keras_attnvariants.experiments.comparison_folder import ComparisonFolder
from keras_attnvariants.experiments.settings import read_settings
from keras_attnvariants.experiments.training_runs import training_settings
from tests.experiments.toy import toy_file


def test_a_budget_of_tokens_counts_all_batches_of_an_update(tmp_path, corpus_folder):
    changes = {
        "updates = 4": f"tokens = {512 * 40}",
        "batch_tokens = 512": "batch_tokens = 512\naccumulate = 4",
    }
    settings = read_settings(toy_file(tmp_path, corpus_folder, **changes))
    folder = ComparisonFolder(settings, tmp_path, "float32")
    system = settings.systems[0]
    batch_tokens, training = training_settings(folder, system)
    assert batch_tokens == 512 and training["accumulate"] == 4
    assert training["steps"] == 10 and training["validate_every"] == 5
