"""`kav export`: what is wrong is told before any work; test_end_to_end exports."""

from tests.cli.conftest import check_error


def test_a_folder_that_is_no_model(kav, tmp_path):
    result = kav("export", "--model", tmp_path, "--output", tmp_path / "out")
    check_error(result, "manifest.json", str(tmp_path))
    assert not (tmp_path / "out").exists()


def test_options_out_of_range(kav, run_folder, tmp_path):
    options = ("--model", run_folder, "--output", tmp_path / "out")
    check_error(kav("export", *options, "--max-tokens", 4000), "`max_tokens`", "4000")
    assert not (tmp_path / "out").exists()
