"""`kav transcribe`: recordings in, texts out."""

import pytest

import keras_attnvariants as kav_package
from tests.cli.conftest import check_error
from tests.cli.conftest import stdout
from tests.data import recordings
from tests.data.recordings import tone


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    built, subwords = recordings.toy_model()
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
    check_error(result, "reads texts: use `kav translate`, not", str(run_folder))
    result = kav("translate", "--model", model, "two")
    check_error(result, "reads recordings: use `kav transcribe`, not", str(model))


def test_a_text_in_the_place_of_a_recording(kav, model, tmp_path):
    (tmp_path / "a.wav").write_text("Good morning.\n" * 50)
    result = kav("transcribe", "--model", model, tmp_path / "a.wav")
    assert result.exit_code == 2
    assert "Error: This is no recording such as WAV or FLAC" in result.stderr


@pytest.mark.parametrize("format", ["onnx", "ctranslate2"])
def test_exports_are_refused_in_a_line(kav, model, tmp_path, format):
    output = tmp_path / "exported"
    result = kav("export", "--model", model, "--output", output, "--format", format)
    assert result.exit_code == 2
    assert "Error:" in result.stderr and "models that read texts" in result.stderr
    assert not output.exists()


def test_a_saved_model_transcribes_as_python_does(kav, model, tmp_path):
    paths = [
        str(recordings.write(tmp_path / f"{seconds}.wav", tone(seconds)))
        for seconds in (0.5, 1.0, 0.0)
    ]
    output = tmp_path / "exported"
    exported = kav("export", "--model", model, "--output", output)
    assert exported.exit_code == 0, exported.output
    wrong = kav("translate", "--saved-model", output, "two")
    check_error(wrong, "reads recordings: use `kav transcribe`, not")
    result = kav("transcribe", "--saved-model", output, *paths)
    assert result.exit_code == 0, result.output
    assert result.stdout == kav("transcribe", "--model", model, *paths).stdout


def test_training_tells_how_to_transcribe(kav, tmp_path):
    data, run = recordings.corpus(tmp_path / "data", count=8), tmp_path / "run"
    (data / "clips" / "validation-0.wav").unlink()
    tiny = ("--width", 8, "--layers", 1, "--heads", 2, "--feed-forward", 16)
    quick = ("--steps", 1, "--precision", "float32", "--bleu-sentences", 4)
    where = ("--task", "speech", "--data", data, "--run", run)
    result = kav("train", *where, *tiny, *quick, "--vocabulary-size", 23)
    assert result.exit_code == 0, result.output
    assert f"kav transcribe --model {run} FILE.wav" in result.stdout
    assert "val_wer" in (run / "log.jsonl").read_text()
