"""A run becomes a SavedModel whose signatures answer."""

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:__array__:DeprecationWarning"),
]


def test_export_and_serve(recipe, run_folder, tmp_path):
    output = recipe("export_and_serve.py", run_folder, tmp_path / "saved")
    assert f"Exported {tmp_path / 'saved' / '1'}" in output
    assert "'' -> ''" in output
    assert output.count(" -> ") == 3
    assert "log probability -" in output
    assert (tmp_path / "saved" / "1" / "saved_model.pb").is_file()
