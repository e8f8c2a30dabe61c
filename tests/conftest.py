"""What every test shares: quiet TensorFlow, fixed seeds, the development corpora."""

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

# Read by Keras and TensorFlow when they are first imported, so set before that.
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
if "PYTEST_XDIST_WORKER" in os.environ:  # the workers share the cores
    os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")

import keras  # noqa: E402
import pytest  # noqa: E402
from hypothesis import settings  # noqa: E402

# Here, so that the process that parallel workers report to has it too.
pytest_plugins = ["tests.attention.matrix", "tests.toy_runs"]

REPOSITORY = Path(__file__).resolve().parents[1]
# Rooms of a few tests that take long: trainings, exports, programs, servers.
LONG = ("tuning", "docs", "training", "serving", "cli", "benchmarks", "recipes")

# The first example of a property may compile a graph: no deadline per example.
settings.register_profile("suite", deadline=None, print_blob=True)
settings.load_profile("suite")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order the files so that parallel workers end at the same time.

    Files of long tests come first and those of few tests last; each is left whole.
    """
    sizes = Counter(item.path for item in items)

    def place(item: pytest.Item) -> tuple[int, int, Path]:
        room = next(
            (n for n, name in enumerate(LONG) if in_room(item, name)), len(LONG)
        )
        return room, -sizes[item.path], item.path

    items.sort(key=place)


def in_room(item: pytest.Item, name: str) -> bool:
    """Whether a test is in a folder of the tests."""
    return item.path.is_relative_to(REPOSITORY / "tests" / name)


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory) -> Path:
    """Temporary folder of all workers of this run."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


@pytest.fixture(autouse=True)
def same_start() -> Iterator[None]:
    """Start every test from the same seeds and leave Keras as it was found."""
    policy = keras.config.dtype_policy()
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
