"""Setup of all tests: quiet TensorFlow, fixed seeds, the development corpora."""

import atexit
import gc
import os
import shutil
import tempfile
import unittest.mock
from collections import Counter
from collections.abc import Generator
from collections.abc import Iterator
from pathlib import Path

# Imports and collected tests are not garbage: collections of them take a fifth of the
# time.
gc.disable()

# Read by Keras and TensorFlow when they are first imported, so set before that.
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
if "PYTEST_XDIST_WORKER" in os.environ:  # the workers share the cores
    os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")
    os.environ.setdefault("TF_NUM_INTEROP_THREADS", "1")
# Workers and the processes of tests share compiled programs.
if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
    COMPILED = tempfile.mkdtemp(prefix="compiled-")
    atexit.register(shutil.rmtree, COMPILED, ignore_errors=True)
    os.environ["JAX_COMPILATION_CACHE_DIR"] = COMPILED
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
    os.environ["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "-1"

import keras  # noqa: E402
import pytest  # noqa: E402
from hypothesis import settings  # noqa: E402

from tests.forks import Forks  # noqa: E402
from tests.forks import with_tensorflow  # noqa: E402

# Listed here so that the process that controls parallel workers loads them too.
pytest_plugins = ["tests.attention.matrix", "tests.toy_runs"]

REPOSITORY = Path(__file__).resolve().parents[1]
# Folders with few but long tests: trainings, exports, programs, servers.
LONG = (
    *("docs", "experiments", "tuning", "training"),
    *("serving", "cli", "benchmarks", "recipes"),
)

# The first example of a property may compile a graph: no deadline per example.
settings.register_profile("suite", deadline=None, print_blob=True)
settings.load_profile("suite")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Enables garbage collection after this, only for objects that tests create."""
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Orders the files so that parallel workers end at the same time.

    Files of long tests come first and files of few tests last. Files are not split.
    """
    sizes = Counter(item.path for item in items)

    def place(item: pytest.Item) -> tuple[int, int, Path]:
        group = next(
            (n for n, name in enumerate(LONG) if in_folder(item, name)), len(LONG)
        )
        return group, -sizes[item.path], item.path

    items.sort(key=place)


def in_folder(item: pytest.Item, name: str) -> bool:
    """Whether a test is in one of the folders of tests."""
    return item.path.is_relative_to(REPOSITORY / "tests" / name)


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory) -> Path:
    """Temporary folder of all workers of this run."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


@pytest.fixture(scope="session")
def forks() -> Iterator[Forks]:
    """Starts programs in processes that have imported TensorFlow."""
    with with_tensorflow() as forks:
        yield forks


@pytest.fixture(autouse=True, scope="module")
def new_kernels() -> None:
    """Makes TensorFlow drop the kernels that the operations of another file used."""
    keras.utils.set_random_seed(20)


@pytest.fixture(autouse=True)
def same_start(new_kernels) -> Iterator[None]:
    """Starts every test from the same seeds and leaves Keras as it was found.

    Setting the seed of TensorFlow would also drop its kernels, for stateful random
    operations, which no test uses.
    """
    policy = keras.config.dtype_policy()
    with unittest.mock.patch("tensorflow.random.set_seed"):
        keras.utils.set_random_seed(20)
    yield
    keras.config.set_dtype_policy(policy)


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """Folder of the development corpora, named by the environment variable KAV_DATA."""
    default = REPOSITORY.parent / "shared" / "data"
    folder = Path(os.environ.get("KAV_DATA", default))
    if not folder.is_dir():
        pytest.skip(f"needs corpora, and KAV_DATA names no folder: {folder}")
    return folder
