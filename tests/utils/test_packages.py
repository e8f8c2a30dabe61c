"""Which packages are installed, and how those that are not can be."""

import keras
import pytest

from keras_attnvariants.utils.packages import check_extra
from keras_attnvariants.utils.packages import versions


def test_missing_packages_are_named_with_the_command_that_installs_them():
    with pytest.raises(ValueError, match="It needs no_such and none_such") as error:
        check_extra("It", "tune", ("json", "no_such", "none_such"))
    assert str(error.value).endswith("pip install 'keras_attnvariants[tune]'")
    check_extra("It", "tune", ("json",))


def test_versions_are_those_of_installed_packages():
    assert versions(("keras", "no-such-package")) == {"keras": keras.__version__}
