"""States come back bit by bit; damage and full disks cost one state at most."""

import errno
import json
import subprocess

import keras
import ml_dtypes
import numpy as np
import pytest

from keras_attnvariants.training.state import NonFiniteError
from keras_attnvariants.training.state import StateWriteError
from keras_attnvariants.training.state import TrainingState
from keras_attnvariants.training.state import assign_arrays
from keras_attnvariants.utils.files import DamagedFolderError
from keras_attnvariants.utils.files import file_entry
from keras_attnvariants.utils.folders import MANIFEST
from tests.training.faults import full_disk_after
from tests.training.toy import same

# NumPy 2.4 and TensorFlow 2.21 disagree about a keyword of `__array__`.
pytestmark = pytest.mark.filterwarnings("ignore:__array__:DeprecationWarning")

GENERATOR = np.random.default_rng(0)
ARRAYS = {
    "model": [
        GENERATOR.normal(size=(3, 4)).astype("float32"),
        GENERATOR.normal(size=5).astype(ml_dtypes.bfloat16),
        np.array([-0.0, 1e-45, 3e38], "float32"),
        np.array([7, 2**32 - 1], "uint32"),
        np.array(True),
        np.zeros((0, 2), "float16"),
    ],
    "optimizer": [np.array(2**40, "int64")],
}


def save(store, step):
    return store.save(ARRAYS, {"step": step})


def test_arrays_come_back_bit_by_bit(tmp_path):
    save(TrainingState(tmp_path), 5)
    state = TrainingState(tmp_path).load_latest()
    assert state.progress == {"step": 5}
    assert state.variables.keys() == ARRAYS.keys()
    for group, arrays in ARRAYS.items():
        assert same(state.variables[group], arrays)


def test_more_than_ten_arrays_keep_their_order(tmp_path):
    arrays = [np.array(i) for i in range(1200)]
    TrainingState(tmp_path).save({"model": arrays}, {"step": 1})
    assert same(TrainingState(tmp_path).load_latest().variables["model"], arrays)


def test_variables_of_a_bfloat16_layer_come_back(tmp_path):
    layer = keras.layers.Dense(3, dtype="bfloat16")
    layer.build((None, 2))
    TrainingState(tmp_path).save({"model": layer.variables}, {"step": 1})
    other = keras.layers.Dense(3, dtype="bfloat16")
    other.build((None, 2))
    arrays = TrainingState(tmp_path).load_latest().variables["model"]
    assign_arrays(other.variables, arrays, "model")
    assert arrays[0].dtype == ml_dtypes.bfloat16
    assert np.array_equal(other.kernel.numpy(), layer.kernel.numpy())


def test_the_last_two_are_kept(tmp_path):
    store = TrainingState(tmp_path)
    for step in range(1, 5):
        save(store, step)
    assert [path.name for path in store.paths()] == ["state-00000003", "state-00000004"]


def test_an_empty_store_has_no_state(tmp_path):
    assert TrainingState(tmp_path / "none").load_latest() is None


@pytest.mark.parametrize("name", ["variables.npz", "progress.json", "manifest.json"])
@pytest.mark.parametrize("damage", ["cut", "flip", "remove"])
def test_damaged_state_falls_back_with_one_line(tmp_path, capsys, name, damage):
    store = TrainingState(tmp_path)
    save(store, 1)
    path = save(store, 2) / name
    content = bytearray(path.read_bytes())
    if damage == "remove":
        path.unlink()
    elif damage == "cut":
        path.write_bytes(content[: len(content) // 2])
    else:
        content[3] ^= 1
        path.write_bytes(content)
    store = TrainingState(tmp_path)
    assert store.load_latest().progress == {"step": 1}
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.count("\n") == 1
    assert "state-00000002 is damaged" in output.err
    # The next state replaces the damaged one, not the one that was good.
    save(store, 2)
    assert [path.name for path in store.paths()] == ["state-00000001", "state-00000003"]
    assert TrainingState(tmp_path).load_latest().progress == {"step": 2}


def junk(folder):
    (folder / "variables.npz").write_bytes(b"PK junk")


def pickled(folder):
    values = {"model/000000/object": np.array([{}, None], object)}
    np.savez(folder / "variables.npz", **values)


def of_unknown_dtype(folder):
    np.savez(folder / "variables.npz", **{"model/000000/nothing": np.ones(3)})


def of_odd_names(folder):
    np.savez(folder / "variables.npz", weights=np.ones(3))


def a_single_array(folder):
    with (folder / "variables.npz").open("wb") as file:
        np.save(file, np.ones(3))


def without_step(folder):
    (folder / "progress.json").write_text('{"step": "two"}')


def a_list(folder):
    (folder / "progress.json").write_text("[1]")


def deep(folder):
    (folder / "progress.json").write_text("[" * 100_000)


@pytest.mark.parametrize(
    "spoil",
    [
        *(junk, pickled, of_unknown_dtype, of_odd_names, a_single_array),
        *(without_step, a_list, deep),
    ],
)
def test_junk_is_not_a_state_though_its_manifest_matches(tmp_path, capsys, spoil):
    store = TrainingState(tmp_path)
    save(store, 1)
    path = save(store, 2)
    spoil(path)
    entries = {p.name: file_entry(p) for p in path.iterdir() if p.name != MANIFEST}
    (path / MANIFEST).write_text(json.dumps(entries))
    assert TrainingState(tmp_path).load_latest().progress == {"step": 1}
    error = capsys.readouterr().err
    assert f"{path} is damaged (" in error and error.count("\n") == 1
    assert "allow_pickle" not in error


def test_a_manifest_must_list_the_files_of_a_state(tmp_path, capsys):
    store = TrainingState(tmp_path)
    save(store, 1)
    path = save(store, 2) / MANIFEST
    listed = json.loads(path.read_text())
    del listed["variables.npz"]
    for text, problem in (
        ("{}", "must list the files of the folder"),
        (json.dumps(listed), "must list 'variables.npz'"),
    ):
        path.write_text(text)
        assert TrainingState(tmp_path).load_latest().progress == {"step": 1}
        assert problem in capsys.readouterr().err


def test_all_damaged_is_an_error(tmp_path):
    (save(TrainingState(tmp_path), 1) / "variables.npz").write_bytes(b"")
    with pytest.raises(DamagedFolderError, match="every saved state is damaged"):
        TrainingState(tmp_path).load_latest()


def test_half_written_state_is_ignored_and_removed(tmp_path, capsys):
    save(TrainingState(tmp_path), 1)
    (tmp_path / "tmp-state-00000002").mkdir()
    (tmp_path / "tmp-state-00000002/variables.npz").write_bytes(b"PK")
    assert TrainingState(tmp_path).load_latest().progress == {"step": 1}
    assert capsys.readouterr().err == ""
    assert [path.name for path in tmp_path.iterdir()] == ["state-00000001"]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", ["float32", "float16", ml_dtypes.bfloat16])
def test_non_finite_arrays_are_never_written(tmp_path, value, dtype):
    store = TrainingState(tmp_path)
    save(store, 1)
    with pytest.raises(NonFiniteError, match="optimizer variable 1 .* is not finite"):
        store.save(
            {"optimizer": [np.ones(2), np.array([1, value], dtype)]}, {"step": 2}
        )
    assert [path.name for path in tmp_path.iterdir()] == ["state-00000001"]


# Before NumPy 2.2, an archive that could not be written is told of when it is closed.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_full_disk_at_any_byte_leaves_the_last_state(tmp_path, monkeypatch):
    store = TrainingState(tmp_path)
    path = save(store, 1)
    size = sum(file.stat().st_size for file in path.iterdir())
    for limit in [*range(0, size, 97), size - 1]:
        with monkeypatch.context() as patch:
            full_disk_after(patch, limit)
            with pytest.raises(StateWriteError, match="No space left") as caught:
                save(store, 2)
        assert caught.value.errno == errno.ENOSPC
        assert "continues from its last state" in str(caught.value)
        assert str(tmp_path.parent) in str(caught.value)
        assert "\n" not in str(caught.value)
        assert [p.name for p in tmp_path.iterdir()] == ["state-00000001"]
    assert TrainingState(tmp_path).load_latest().progress == {"step": 1}
    save(store, 2)  # space is there again
    assert TrainingState(tmp_path).load_latest().progress == {"step": 2}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_full_disk_for_real(tmp_path):
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(tmp_path)]
    try:
        if subprocess.run(mount, capture_output=True).returncode:
            pytest.skip("mounting a small file system needs more rights")
    except FileNotFoundError:
        pytest.skip("there is no mount command")
    try:
        store = TrainingState(tmp_path / "state")
        save(store, 1)
        with pytest.raises(StateWriteError, match="No space left"):
            store.save({"model": [np.zeros(100_000)]}, {"step": 2})
        assert TrainingState(tmp_path / "state").load_latest().progress == {"step": 1}
        save(store, 3)
        assert TrainingState(tmp_path / "state").load_latest().progress == {"step": 3}
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def test_state_of_another_model_is_refused():
    variables = [keras.Variable(np.zeros((2, 3), "float32"))]
    for arrays in ([np.zeros((3, 2), "float32")], []):
        with pytest.raises(ValueError, match="weight variables .* Received: "):
            assign_arrays(variables, arrays, "weight")


def test_states_behind_a_link_are_neither_read_nor_removed(tmp_path):
    save(TrainingState(tmp_path / "theirs"), 1)
    (tmp_path / "theirs" / "tmp-state").mkdir()
    (tmp_path / "state").symlink_to(tmp_path / "theirs")
    for method in ("paths", "load_latest"):
        with pytest.raises(DamagedFolderError, match="state must be .* no link"):
            getattr(TrainingState(tmp_path / "state"), method)()
    assert len(list((tmp_path / "theirs").iterdir())) == 2
