"""Help, and what a newcomer gets wrong: one clear line, exit code 2, no traceback."""

import shutil

import pytest

RECIPES = ("train", "evaluate", "translate", "export", "quickstart")


@pytest.mark.parametrize("name", RECIPES)
def test_help_teaches(name, run):
    result = run(name, "--help")
    assert result.exit_code == 0
    assert "Usage" in result.stdout
    options = [line for line in result.stdout.splitlines() if " --" in line]
    assert len(options) > 2
    # Nothing is left without a word about it.
    for line in options:
        assert len(line.replace("│", "").split()) >= 3, line


def check_error(result, *phrases):
    """One line on standard error that holds all phrases."""
    assert result.exit_code == 2, result.output
    [line] = result.stderr.splitlines()
    assert line.startswith("Error: ")
    for phrase in phrases:
        assert phrase in line
    assert "Traceback" not in result.output


@pytest.fixture
def folder(corpus_folder, tmp_path):
    """A copy of the corpus to spoil."""
    return shutil.copytree(corpus_folder, tmp_path / "corpus")


def train(run, tmp_path, data, *options, source="xx", target="yy"):
    languages = ("--source", source, "--target", target)
    where = ("--data", data, "--run", tmp_path / "run")
    result = run("train", *where, *languages, *options)
    assert not (tmp_path / "run").exists()
    return result


def test_a_missing_folder(run, tmp_path):
    result = train(run, tmp_path, tmp_path / "nowhere")
    check_error(result, "no such folder", str(tmp_path / "nowhere"))


def test_an_unknown_corpus_name_gets_the_nearest(run, tmp_path):
    check_error(train(run, tmp_path, "bible-en-de"), "bible-de-en")


def test_unequal_line_counts(run, tmp_path, folder):
    with open(folder / "train.xx", "a") as file:
        file.write("one more\n")
    result = train(run, tmp_path, folder)
    check_error(result, "equally many lines", "601", "600", "train.xx", "train.yy")


def test_a_binary_file(run, tmp_path, folder):
    (folder / "train.yy").write_bytes(bytes(range(256)) * 100)
    check_error(train(run, tmp_path, folder), "binary", "train.yy")


def test_an_empty_corpus(run, tmp_path, folder):
    for language in ("xx", "yy"):
        (folder / f"train.{language}").write_bytes(b"")
    check_error(train(run, tmp_path, folder), "'train' holds no usable pair")


def test_an_absent_language(run, tmp_path, folder):
    result = train(run, tmp_path, folder, target="fr")
    check_error(result, "'fr'", "languages there: xx, yy")


def test_no_training_split(run, tmp_path, folder):
    for language in ("xx", "yy"):
        (folder / f"train.{language}").unlink()
    check_error(train(run, tmp_path, folder), "'train'", "'validation', 'test'")


def test_an_unknown_preset_gets_the_nearest(run, tmp_path, folder):
    result = train(run, tmp_path, folder, "--preset", "kav/hc-sb/bible")
    check_error(result, "kav/hc-sa/bible")


def test_a_vocabulary_too_large_for_the_corpus(run, tmp_path, folder):
    result = train(run, tmp_path, folder, "--vocabulary-size", 7000)
    check_error(result, "vocabulary_size=7000", "<=")


@pytest.mark.parametrize(
    ("option", "value", "phrase"),
    [
        ("--minutes", "0", "`minutes` must be positive"),
        ("--steps", "-3", "`steps` must be a positive integer"),
        ("--warmup-steps", "0", "must be positive"),
        ("--batch-tokens", "0", "batch_tokens"),
        ("--precision", "float3", "float3"),
        ("--label-smoothing", "2", "`smoothing`"),
    ],
)
def test_numbers_out_of_range(option, value, phrase, run, tmp_path, folder):
    sizes = ("--vocabulary-size", 50, "--width", 16, "--layers", 1, "--heads", 2)
    result = train(run, tmp_path, folder, *sizes, option, value)
    check_error(result, phrase)


def test_a_number_that_is_none(run, tmp_path, folder):
    result = train(run, tmp_path, folder, "--steps", "many")
    assert result.exit_code == 2
    assert "'--steps'" in result.stderr
    assert "valid integer" in result.stderr
    assert "Traceback" not in result.output


def test_a_folder_that_is_no_model(run, tmp_path):
    for name in ("translate", "export"):
        more = ("--output", tmp_path / "out") if name == "export" else ("text",)
        result = run(name, "--model", tmp_path, *more)
        check_error(result, "manifest.json", str(tmp_path))


def test_a_folder_that_is_no_saved_model(run, tmp_path):
    result = run("translate", "--saved-model", tmp_path, "text")
    check_error(result, "saved_model.pb", str(tmp_path))


def test_nothing_to_evaluate(run, corpus_folder):
    where = ("--data", corpus_folder, "--source", "xx", "--target", "yy")
    check_error(run("evaluate", *where), "--model", "--saved-model")


def test_a_split_that_is_not_there(run, corpus_folder, tmp_path):
    where = ("--data", corpus_folder, "--source", "xx", "--target", "yy")
    result = run("evaluate", *where, "--split", "test2016", "--model", tmp_path)
    check_error(result, "'test2016'", "'train', 'validation', 'test'")


def test_two_sources_of_text(run, tmp_path):
    result = run("translate", "text", "--input", tmp_path / "x", "--model", tmp_path)
    check_error(result, "either sentences or --input")


def test_two_models_to_translate_with(run, tmp_path):
    result = run("translate", "a", "--saved-model", tmp_path, "--model", tmp_path)
    check_error(result, "either --model or --saved-model")


def test_a_text_file_that_is_missing(run, tmp_path):
    result = run("translate", "--input", tmp_path / "x.txt", "--model", tmp_path)
    check_error(result, "No such file", "x.txt")
