"""The package as a whole: lazy imports, public names, version."""

import subprocess
import sys
from importlib import metadata

import pytest

import keras_attnvariants as kav


def run_python(code: str) -> str:
    """The output of a program in a fresh interpreter."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_importing_the_package_starts_neither_keras_nor_tensorflow():
    code = (
        "import sys, keras_attnvariants\n"
        "print({'keras', 'tensorflow', 'jax', 'numpy'} & set(sys.modules) or 'none')"
    )
    assert run_python(code) == "none"


@pytest.mark.parametrize("name", kav.__all__)
def test_every_public_name_can_be_reached(name):
    assert getattr(kav, name) is getattr(kav, name) is not None


@pytest.mark.parametrize("name", sorted(kav._HOME))
def test_names_at_the_top_are_exported_by_their_folder(name):
    assert hasattr(getattr(kav, kav._HOME[name]), name)


def test_dir_lists_what_is_imported_later():
    assert set(kav.__all__) <= set(dir(kav))


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'presetz'"):
        _ = kav.presetz


def test_version_is_the_one_that_is_installed():
    try:
        installed = metadata.version("keras_attnvariants")
    except metadata.PackageNotFoundError:
        pytest.skip("the package runs from its folder and is not installed")
    assert kav.__version__ == installed
