"""`kav transcribe`: recordings in, texts out."""

import warnings

import keras
import numpy as np
import pytest
from typer.testing import CliRunner

import keras_attnvariants as kav_package
from keras_attnvariants.cli import app
from tests.cli.conftest import check_error
from tests.cli.conftest import stdout
from tests.data import recordings
from tests.data.recordings import tone
from tests.serving.echo import echo_server
from tests.serving.service import service_of


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    keras.utils.set_random_seed(2)
    built, subwords = recordings.toy_model(sharpness=3)
    folder = tmp_path_factory.mktemp("speech") / "model"
    return kav_package.save_model(built, folder, subwords)


def test_transcripts_are_those_of_python(kav, model, tmp_path):
    paths = [
        str(recordings.write(tmp_path / name, tone(seconds, rate), rate))
        for name, seconds, rate in [("a.wav", 0.5, 16_000), ("b.flac", 1.0, 44_100)]
    ]
    paths.append(str(recordings.write(tmp_path / "empty.wav", tone()[:0])))
    loaded = kav_package.load_model(model)
    expected = kav_package.Translator(*loaded, xla=False).translate(paths)
    assert expected[2] == ""
    result = kav("transcribe", "--model", model, *paths)
    assert result.exit_code == 0, result.output
    assert result.stdout == "".join(f"{line}\n" for line in expected)
    (tmp_path / "list").write_text("".join(f"{path}\n" for path in paths))
    again = kav("transcribe", "--model", model, "--input", tmp_path / "list")
    assert again.stdout == result.stdout


def test_a_recording_that_is_too_long_is_cut_with_a_warning(model, tmp_path):
    path = str(recordings.write(tmp_path / "long.wav", tone(3600, volume=0.1)))
    translator = kav_package.Translator(
        *kav_package.load_model(model), source_lengths=[64], xla=False
    )
    with pytest.warns(UserWarning, match="truncated"):
        [cut] = translator.translate([path])
    assert translator.num_truncated == 1
    [start] = translator.translate(
        [str(recordings.write(tmp_path / "start.wav", tone(64 * 0.04, volume=0.1)))]
    )
    assert cut == start


def test_recordings_are_read_in_small_groups(kav, model, tmp_path, monkeypatch):
    path = recordings.write(tmp_path / "a.wav", tone(0.05))
    (tmp_path / "list").write_text(f"{path}\n" * 200)
    sizes = []

    def translate(self, paths):
        sizes.append(len(paths))
        return ["one"] * len(paths)

    monkeypatch.setattr(kav_package.Translator, "translate", translate)
    result = kav("transcribe", "--model", model, "--input", tmp_path / "list")
    assert stdout(result) == "one\n" * 200
    assert sum(sizes) == 200 and max(sizes) == 64


def test_each_command_names_the_other(kav, model, run_folder):
    result = kav("transcribe", "--model", run_folder, "a.wav")
    check_error(result, "reads texts", "`kav translate` uses it", str(run_folder))
    result = kav("translate", "--model", model, "two")
    check_error(result, "reads recordings", "`kav transcribe` uses it", str(model))


@pytest.mark.parametrize("format", ["onnx", "ctranslate2"])
def test_exports_are_refused_in_a_line(kav, model, tmp_path, format):
    output = tmp_path / "exported"
    result = kav("export", "--model", model, "--output", output, "--format", format)
    assert result.exit_code == 2
    assert "Error:" in result.stderr and "models that read texts" in result.stderr
    assert not output.exists()


@pytest.fixture(scope="module")
def exported(model, tmp_path_factory):
    output = tmp_path_factory.mktemp("exported")
    options = ("--max-batch", "4", "--precision", "float32")
    made = CliRunner().invoke(
        app, ["export", "--model", str(model), "--output", str(output), *options]
    )
    assert f"kav transcribe --saved-model {output} FILE.wav" in stdout(made)
    return output


@pytest.fixture(scope="module")
def service(exported):
    with service_of(exported) as found:
        yield found


@pytest.fixture
def systems(model, exported, service):
    """The options that name the same model in every form."""
    return [
        ("--model", model),
        ("--saved-model", exported),
        ("--server", f"{service.grpc}/en-de"),
        ("--server", f"{service.rest}/en-de"),
    ]


def noise(seconds, channels=1):
    shape = (round(seconds * 16_000), channels)
    return np.random.default_rng(3).uniform(-1, 1, shape).astype("float32")


def test_all_forms_of_a_model_transcribe_alike(kav, systems, tmp_path):
    paths = [
        str(recordings.write(tmp_path / name, samples, rate, **options))
        for name, samples, rate, options in [
            ("empty.wav", tone()[:0], 16_000, {}),
            ("silence.wav", 0 * tone(1.0), 16_000, {}),
            ("rate.flac", tone(0.5, 44_100), 44_100, {}),
            ("slow.wav", tone(0.5, 8_000), 8_000, {}),
            ("stereo.wav", noise(0.5, 2), 16_000, {}),
            ("clipped.wav", 9 * tone(0.5), 16_000, {"subtype": "FLOAT"}),
            ("noise.wav", noise(1.0), 16_000, {}),
            ("24 bits.wav", noise(0.3), 16_000, {"subtype": "PCM_24"}),
        ]
    ]
    paths.append(str(recordings.cut(recordings.write(tmp_path / "c.wav", noise(1.0)))))
    found = [stdout(kav("transcribe", *system, *paths)) for system in systems]
    assert found[0].startswith("\n") and found[0].count("\n") == len(paths)
    assert len({*found}) == 1 and len({*found[0].split("\n")}) > 5


def test_a_recording_of_an_hour_is_cut_with_a_warning(kav, systems, tmp_path):
    hour, start = (
        recordings.write(
            tmp_path / f"{seconds}.wav",
            np.tile(noise(0.5), (seconds, 1)),
            8_000,
            subtype="PCM_U8",
        )
        for seconds in (3600, 5)
    )
    for system in systems:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            cut = stdout(kav("transcribe", *system, hour, start))
        assert any("truncated" in str(each.message) for each in caught)
        assert len({*cut.splitlines()}) == 1 and cut.count("\n") == 2


def test_what_is_no_recording_is_an_error_in_one_line(kav, systems, tmp_path):
    (tmp_path / "text.wav").write_text("Good morning.\n" * 50)
    (tmp_path / "nothing.wav").touch()
    recordings.cut(recordings.write(tmp_path / "cut.flac", noise(5.0)))
    message = "This is not a recording such as WAV or FLAC"
    for system in systems:
        for name in ("text.wav", "nothing.wav", "cut.flac"):
            result = kav("transcribe", *system, tmp_path / name)
            check_error(result, message, name)
        check_error(kav("transcribe", *system, "no.wav"), "There is no such recording")
        check_error(kav("translate", *system, "two"), "`kav transcribe` uses it")


def test_a_server_of_texts_is_told_the_other_command(kav):
    with echo_server() as address:
        result = kav("transcribe", "a.wav", "--server", f"{address}/en-de")
    check_error(result, "reads texts", "`kav translate` uses it")


@pytest.mark.parametrize("option", [("--beam-size", 2), ("--precision", "int8")])
def test_a_server_has_its_own_options(kav, option):
    result = kav("transcribe", "a.wav", "--server", "localhost:1/m", *option)
    check_error(result, option[0], "--model")


def test_training_tells_how_to_transcribe(kav, tmp_path):
    data, run = recordings.corpus(tmp_path / "data", count=8), tmp_path / "run"
    (data / "clips" / "validation-0.wav").unlink()
    tiny = ("--width", 8, "--layers", 1, "--heads", 2, "--feed-forward", 16)
    quick = ("--steps", 1, "--precision", "float32", "--score-sentences", 4)
    where = ("--task", "speech", "--data", data, "--run", run)
    result = kav("train", *where, *tiny, *quick, "--vocabulary-size", 23)
    assert result.exit_code == 0, result.output
    assert f"kav transcribe --model {run} FILE.wav" in result.stdout
    assert "val_wer" in (run / "log.jsonl").read_text()
