"""`kav translate`: lines in, translations out, in order."""

import os
import subprocess
import sys

import pytest

from keras_attnvariants.cli.outputs import PartialFile
from keras_attnvariants.cli.outputs import output_to
from keras_attnvariants.cli.systems import DecodingOptions
from keras_attnvariants.cli.systems import SystemOptions
from keras_attnvariants.data import tasks
from tests.cli.conftest import check_error
from tests.cli.conftest import stdout
from tests.serving.echo import echo_server


def test_arguments_file_and_standard_input_are_translated_alike(
    kav, run_folder, corpus_folder, tmp_path
):
    texts = (corpus_folder / "test.xx").read_text().splitlines()[:5]
    options = ("--model", run_folder, "--beam-size", 2)
    expected = stdout(kav("translate", *texts, *options))
    assert len(expected.splitlines()) == 5
    lines = "\n".join(texts) + "\n"
    assert stdout(kav("translate", *options, input=lines)) == expected
    (tmp_path / "in").write_text(lines)
    files = ("--input", tmp_path / "in", "--output", tmp_path / "out")
    assert stdout(kav("translate", *options, *files)) == ""
    assert (tmp_path / "out").read_text() == expected


def test_only_newlines_end_lines(kav, run_folder):
    text = "be\x0bla\n\nla\u2028be\x85\r\nno end".encode()
    result = kav("translate", "--model", run_folder, "--beam-size", 1, input=text)
    lines = stdout(result).split("\n")
    assert len(lines) == 5 and lines[1] == "" and lines[4] == ""


def test_a_model_folder_is_as_good_as_a_run(kav, run_folder):
    texts = ("translate", "be la", "--beam-size", 1)
    by_run = stdout(kav(*texts, "--run", run_folder))
    assert by_run == stdout(kav(*texts, "--model", run_folder / "averaged"))


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "int8"])
def test_precisions(kav, run_folder, precision):
    options = ("--model", run_folder, "--precision", precision, "--beam-size", 1)
    assert stdout(kav("translate", "be la", *options)).count("\n") == 1


def test_no_ngram_twice(kav, run_folder):
    from keras_attnvariants import Translator
    from keras_attnvariants import training

    text, options = "be la ba le be la", ("--model", run_folder, "--beam-size", 2)
    found = [
        stdout(kav("translate", text, *options, "--no-repeat-ngram", size)).strip()
        for size in (0, 1)
    ]
    model = training.load_run(run_folder)
    expected = [
        Translator(*model, beam_size=2, xla=False, no_repeat_ngram=size)
        for size in (0, 1)
    ]
    assert found == [translator.translate([text])[0] for translator in expected]


def test_samples_do_not_depend_on_the_other_lines(kav, run_folder, tmp_path):
    options = ("--model", run_folder, "--sample", "--temperature", 1.5)
    lines = ["be la", "la ba le", "", "be la"]
    found = stdout(kav("translate", *lines, *options)).splitlines()
    assert len(found) == 4 and found[0] == found[3] and found[2] == ""
    assert stdout(kav("translate", lines[1], *options)).splitlines() == found[1:2]
    others = [
        stdout(kav("translate", lines[1], *options, "--seed", seed)) for seed in (1, 2)
    ]
    assert len({*others, found[1] + "\n"}) > 1


def test_options_of_searches_that_cannot_be_honoured(kav, run_folder, tmp_path):
    model = ("--model", run_folder)
    check_error(kav("translate", "be", *model, "--top-k", 3), "--top-k", "--sample")
    (tmp_path / "saved_model.pb").touch()
    saved = ("--saved-model", tmp_path, "--sample", "--no-repeat-ngram", 2)
    check_error(kav("translate", "be", *saved), "go together with --model only")
    server = ("--server", "localhost:1/m", *saved[2:])
    check_error(kav("translate", "be", *server), "go together with --model only")


@pytest.mark.parametrize("option", [("--sample",), ("--no-repeat-ngram", 2)])
def test_searches_that_a_served_model_does_not_have(kav, option):
    with echo_server() as address:
        result = kav("translate", "be", "--server", f"{address}/en-de", *option)
    check_error(result, "`signature` must be one of 'serving_default'")


def test_interrupted_work_is_continued_with_the_same_options(
    kav, run_folder, corpus_folder, tmp_path, monkeypatch
):
    files = ("--input", tmp_path / "in", "--output", tmp_path / "out")
    options = ("--model", run_folder, "--beam-size", 2)
    lines = (corpus_folder / "train.xx").read_text().splitlines(True)[:120]
    (tmp_path / "in").write_text("".join(lines))
    expected = stdout(kav("translate", *options, "--input", tmp_path / "in"))

    with monkeypatch.context() as patch:
        patch.setattr(PartialFile, "finish", stop)
        assert kav("translate", *options, *files).exit_code == 130
    resume = ("translate", "--resume", *options, *files)
    check_error(kav(*resume, "--beam-size", 3), "--beam-size 3 instead of 2")
    check_error(kav(*resume, "--sample"), "--sample True instead of False")
    check_error(kav(*resume, "--precision", "int8"), "--precision int8 instead of none")
    model = run_folder / "best"
    check_error(kav(*resume, "--model", model), "--model with sha256", "instead of")
    (tmp_path / "in").write_text("".join([*lines[:-1], "x\n"]))
    check_error(kav(*resume), "The input is not the same as before")
    (tmp_path / "in").write_text("".join(lines))
    stdout(kav(*resume))
    assert (tmp_path / "out").read_text() == expected


def stop(*args):
    raise KeyboardInterrupt


def test_two_sources_of_text(kav, tmp_path):
    result = kav("translate", "text", "--input", tmp_path / "x", "--model", tmp_path)
    check_error(result, "either sentences or --input")


def test_two_models_to_translate_with(kav, tmp_path):
    result = kav("translate", "a", "--saved-model", tmp_path, "--model", tmp_path)
    check_error(result, "one of --model, --saved-model and --server")


def test_a_text_file_that_is_missing(kav, run_folder, tmp_path):
    result = kav("translate", "--input", tmp_path / "x.txt", "--model", run_folder)
    check_error(result, "No such file", "x.txt")


def test_an_output_that_cannot_be_written(kav, run_folder, tmp_path):
    output = ("--output", tmp_path / "no" / "out")
    check_error(kav("translate", "a", "--model", run_folder, *output), "No such folder")


def test_a_folder_without_a_model(kav, tmp_path):
    result = kav("translate", "text", "--model", tmp_path)
    check_error(result, "manifest.json", str(tmp_path))


def test_a_folder_without_a_saved_model(kav, tmp_path):
    result = kav("translate", "text", "--saved-model", tmp_path)
    check_error(result, "saved_model.pb", str(tmp_path))


def test_a_damaged_model(kav, run_folder, tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    for name in os.listdir(run_folder / "best"):
        (folder / name).write_bytes((run_folder / "best" / name).read_bytes())
    (folder / "config.json").write_text("{}")
    check_error(kav("translate", "text", "--model", folder), "config.json", "size")


def test_a_server_translates_and_tensorflow_stays_away(tmp_path):
    code = (
        "import contextlib, sys\n"
        "from keras_attnvariants.cli import app\n"
        "with contextlib.suppress(SystemExit):\n"
        "    app(sys.argv[1:])\n"
        "print({'tensorflow', 'keras'} & set(sys.modules) or 'none')"
    )
    (tmp_path / "in").write_text("be la\n\nno\n")
    with echo_server() as address:
        place = ("--server", f"{address}/en-de/labels/stable")
        done = subprocess.run(
            [sys.executable, "-c", code, "translate", *place]
            + ["--input", tmp_path / "in"],
            capture_output=True,
            text=True,
            check=True,
        )
    assert done.stdout.splitlines() == [
        "en-de stable BE LA",
        "",
        "en-de stable NO",
        "none",
    ]


def test_a_server_with_a_password_is_refused_and_not_kept(kav, tmp_path):
    output = tmp_path / "out"
    place = ("--server", "grpc://me:secret@localhost:1/m")
    result = kav("translate", "a", *place, "--output", output)
    check_error(result, "without a password", "grpc://localhost:1")
    assert "secret" not in result.output
    assert not list(tmp_path.iterdir())


def test_no_password_of_a_server_is_kept_or_shown(kav, tmp_path, monkeypatch):
    (tmp_path / "in").write_text("a\nb\n")
    output = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        with output_to(output, {"--server": "other"}, resume=False) as writer:
            writer.write(["a"], ["A"])
            raise KeyboardInterrupt
    files = ("--input", tmp_path / "in", "--output", output, "--resume")
    server = "http://me:secret@localhost:1/m"
    result = kav("translate", "--server", server, *files)
    check_error(result, "--server http://localhost:1/m instead of other")
    assert "secret" not in result.output
    assert SystemOptions(server=server).shown_server == "http://localhost:1/m"


def test_anything_but_a_server_is_reported(kav):
    check_error(kav("translate", "a", "--server", "localhost:8500"), "host:port/model")
    options = ("--server", "localhost:1/m", "--beam-size", 2)
    check_error(kav("translate", "a", *options), "--beam-size", "apply to --model")


def test_exported_models_compute_each_operator_on_one_core(monkeypatch, tmp_path):
    monkeypatch.setenv("TF_NUM_INTRAOP_THREADS", "2")
    systems = SystemOptions(saved_model=tmp_path)
    how = tasks.get(tasks.DEFAULT), DecodingOptions()
    for before, after in (("2", "2"), (None, "1")):
        if before is None:
            monkeypatch.delenv("TF_NUM_INTRAOP_THREADS")
        with pytest.raises(FileNotFoundError):
            systems.translators(*how)
        assert os.environ["TF_NUM_INTRAOP_THREADS"] == after
