"""`kav tune`: wrong calls are refused in one line, before any work."""

import json
import shutil

import pytest

from keras_attnvariants.data import load_corpus
from tests.cli.conftest import check_error
from tests.cli.conftest import stdout
from tests.tuning.test_proposal import write_run

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture
def tune(kav, tmp_path, corpus_folder):
    def run(*options, space="you2020/offsets", data=corpus_folder):
        folder = tmp_path / "search"
        where = ["--data", data, "--source", "xx", "--target", "yy"]
        if space is not None:
            where += ["--space", space]
        result = kav("tune", *where, "--search", folder, *options)
        assert not folder.exists()
        return result

    return run


def test_a_budget_is_needed_and_one_only(tune):
    check_error(tune(), "must be one of `updates`, `minutes` and `tokens`", "0 of them")
    check_error(tune("--updates", 5, "--minutes", 1), "2 of them")


def test_a_preset_of_another_task(tune):
    result = tune(
        "--updates", 5, "--preset", "kav/base/digits", "--task", "translation"
    )
    check_error(result, "'translation' has texts, and models of the task 'speech'")


def test_a_misspelt_space(tune):
    result = tune("--updates", 5, space="you2020/ofsets")
    check_error(result, "Did you mean 'you2020/offsets'")


def test_settings_of_all_trials_that_the_space_searches(tune, tmp_path):
    path = tmp_path / "space.toml"
    path.write_text("[training]\nlearning_rate = [5e-4, 1e-3]\n")
    result = tune("--updates", 5, "--learning-rate", 1e-3, space=path)
    check_error(result, "already has the dimension learning_rate")


@pytest.mark.parametrize(
    "text, phrases",
    [
        ("sizes = [", ["is not a TOML file"]),
        ("[size]\ndropout = [0.1]", ["has no 'size'", "Did you mean 'sizes'"]),
        ("[sizes]\ndropot = [0.1, 0.2]", ["dropot"]),
        ('[attention]\nencoder = ["Locl"]', ["LocalAttention"]),
        ("[training]\nlabel_smoothing = [0.0, 0.1]\n", ["objective 'bleu'"]),
    ],
)
def test_a_wrong_file(tune, tmp_path, text, phrases):
    path = tmp_path / "space.toml"
    path.write_text(text)
    check_error(tune("--updates", 5, space=path), *phrases)


def test_a_search_has_one_subject(tune, tmp_path, run_folder):
    where = ("--from-locality", run_folder, "--updates", 5)
    check_error(tune(*where), "either --space or --from-locality", "both")
    check_error(tune("--updates", 5, space=None), "neither")
    sizes = tune(*where, "--vocabulary-size", 90, space=None)
    check_error(sizes, "the sizes of its run", "{'vocabulary_size': 90}")
    # Before the corpus is read.
    preset = tune(*where, "--preset", "kav/base/bible", space=None, data="nowhere")
    check_error(preset, "leave out --preset", "kav/base/bible")


def test_trials_go_on_from_a_model_that_is_there(tune, run_folder):
    where = ("--updates", 5, "--from")
    check_error(tune(*where, "kav/base/tatoeba"), "`--from`", "kav/base/tatoeba-en-de")
    sizes = tune(*where, run_folder, "--layers", 3)
    check_error(sizes, "--from has the sizes", "{'num_layers': 3}")
    check_error(
        tune(*where, run_folder / "best"), "This model has no preset: give --preset"
    )


def test_a_baseline_must_be_a_run_of_a_preset(tune, tmp_path, run_folder):
    check_error(tune("--from-locality", tmp_path, space=None), "with log.jsonl")
    where = ("--from-locality", run_folder, "--updates", 5)
    check_error(tune(*where, space=None), "must be one of a preset")


def test_a_baseline_of_another_task_than_the_default(tune, tmp_path, run_folder):
    run = shutil.copytree(run_folder, tmp_path / "run")
    config = {"model": {"config": {"task": "speech"}}}
    (run / "config.json").write_text(json.dumps(config))
    result = tune("--from-locality", run, "--updates", 5, space=None)
    check_error(result, "for the task 'speech'", "Received: 'xx' to 'yy'")


def test_a_missing_file(tune, tmp_path):
    check_error(tune("--updates", 5, space=tmp_path / "no.toml"), "no.toml")


def test_a_corpus_without_validation(tune, tmp_path, corpus_folder):
    data = tmp_path / "corpus"
    data.mkdir()
    for language in ("xx", "yy"):
        file = corpus_folder / f"train.{language}"
        (data / file.name).write_text(file.read_text())
    result = tune("--updates", 5, data=data)
    check_error(result, "needs a corpus with a split 'validation'")


@pytest.mark.slow
def test_hybrids_of_a_baseline_end_in_a_verdict(
    kav, tmp_path, corpus_folder, corpus_cache
):
    """Untrained heads look a little nearer than heads with equal weights."""
    corpus = load_corpus(corpus_folder, "xx", "yy", cache_dir=corpus_cache)
    run = write_run(tmp_path / "run", corpus, num_layers=1)
    where = ("--data", corpus_folder, "--source", "xx", "--target", "yy")
    hybrids = ("--search", tmp_path / "search", "--from-locality", run)
    budget = ("--updates", 2, "--validations", 1, "--precision", "float32")
    near = ("--distance", 8, "--nearness", 0.05)
    printed = stdout(kav("tune", *where, *hybrids, *budget, *near))
    assert "Possible replacements of learned attention" in printed
    assert "Hybrids and baseline by val_loss, after 2 updates each" in printed
    assert "Confirmed: a hybrid is" in printed or "Refuted: no hybrid" in printed
    assert "one seed, so without an interval" in printed


def test_a_baseline_whose_heads_look_everywhere(
    kav, tmp_path, corpus_folder, corpus_cache
):
    corpus = load_corpus(corpus_folder, "xx", "yy", cache_dir=corpus_cache)
    run = write_run(tmp_path / "run", corpus)
    where = ("--data", corpus_folder, "--source", "xx", "--target", "yy")
    hybrids = ("--search", tmp_path / "search", "--from-locality", run)
    result = kav("tune", *where, *hybrids, "--updates", 2)
    assert "learned" in result.stdout
    check_error(result, "No layer looks near enough", "--distance")
