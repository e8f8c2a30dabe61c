"""Systems that translate, by the options that name them."""

import pytest

from keras_attnvariants.cli.systems import DecodingOptions
from keras_attnvariants.cli.systems import SystemOptions
from keras_attnvariants.data import tasks


def test_translators_by_folder(run_folder):
    search = DecodingOptions(beam_size=1, length_penalty=0.6)
    systems = SystemOptions(model=run_folder)
    task = tasks.get(tasks.DEFAULT)
    assert list(systems.translators(task, search)) == [run_folder]
    assert SystemOptions().translators(task, search) == {}


def test_a_precision_of_a_saved_model(tmp_path):
    with pytest.raises(ValueError, match="--precision applies to --model.*int8"):
        SystemOptions(saved_model=tmp_path, precision="int8").check()
