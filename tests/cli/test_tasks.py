"""Commands on models and corpora of other tasks than translation."""

import csv
import shutil

import httpx
import pytest
from PIL import Image

import keras_attnvariants as kav_package
from keras_attnvariants.cli import demo
from keras_attnvariants.data import tasks
from keras_attnvariants.evaluation import AlignedTranslator
from tests.cli.conftest import check_error
from tests.cli.conftest import stdout
from tests.cli.test_demo import page_of
from tests.data import recordings

DOCUMENTS = ["the dog barks at night. it sleeps.", "a cat sees a bird. it waits."]
SUMMARIES = ["the dog barks.", "a cat waits."]


@pytest.fixture(scope="module")
def speech(tmp_path_factory):
    """A model of speech, and a corpus that it fits."""
    folder = tmp_path_factory.mktemp("speech")
    model, subwords = recordings.toy_model()
    kav_package.save_model(model, folder / "model", subwords)
    return folder / "model", recordings.corpus(folder / "data")


@pytest.fixture(scope="module")
def summaries(tmp_path_factory):
    """A model of summaries, and a corpus that it fits."""
    folder = tmp_path_factory.mktemp("summaries")
    tokenizer = kav_package.Tokenizer.train(DOCUMENTS, 24, may_shrink=True)
    attention = [kav_package.DotProductAttention(num_heads=2)] * 3
    size = tokenizer.vocabulary_size
    model = kav_package.Transformer(
        size, 1, 8, 16, *attention, max_length=400, task="summarisation"
    )
    kav_package.save_model(model, folder / "model", tokenizer)
    for split in ("train", "validation", "test"):
        for ending, lines in (("source", DOCUMENTS), ("target", SUMMARIES)):
            path = folder / "data" / f"{split}.{ending}"
            path.parent.mkdir(exist_ok=True)
            path.write_text("".join(f"{line}\n" for line in lines))
    return folder / "model", folder / "data"


@pytest.fixture(params=["speech", "summarisation"])
def other(request, speech, summaries):
    """The task, its model and its corpus."""
    place = {"speech": speech, "summarisation": summaries}[request.param]
    return tasks.get(request.param), *place


def test_doctor_names_the_command_of_a_model(kav, other):
    task, model, _ = other
    assert f"kav {task.use[0]} --model {model}\n" in stdout(kav("doctor", model))


def test_doctor_examines_a_corpus_without_languages(kav, other):
    task, _, data = other
    output = stdout(kav("doctor", data, "--task", task.name))
    assert "test: " in output
    check_error(kav("doctor", data, "--task", "translation"), "language code")
    check_error(kav("doctor", "--task", "speech"), "are those of a corpus")


def test_doctor_names_the_command_of_a_saved_model(kav, speech, tmp_path):
    stdout(kav("export", "--model", speech[0], "--output", tmp_path / "out"))
    place = tmp_path / "out" / "1"
    output = stdout(kav("doctor", tmp_path / "out"))
    assert f"kav transcribe --saved-model {place}\n" in output


def test_evaluate_counts_sources(kav, other):
    task, model, data = other
    output = stdout(kav("evaluate", "--model", model, "--data", data, "--samples", 0))
    count = len((data / f"test.{task.languages[0]}").read_text().splitlines())
    assert f"{model} on {count} {task.source}s of test:" in output


def test_an_exported_model_is_scored_as_its_task_is(kav, other, tmp_path):
    task, model, data = other
    path = tmp_path / "exported"
    stdout(kav("export", "--model", model, "--output", path, "--precision", "float32"))
    place = ("--data", data, "--samples", 0)
    here = stdout(kav("evaluate", "--model", model, *place))
    there = stdout(kav("evaluate", "--saved-model", path, *place))
    assert task.metrics[0].upper() in there.replace("-", "")
    assert there == here.replace(f"{model} on", f"{path} on")


def test_attention_over_a_recording(kav, speech, tmp_path):
    model, data = speech
    path = recordings.write(tmp_path / "a.wav", recordings.tone(1.0))
    picture = tmp_path / "weights.png"
    options = ("--model", model, "--output", picture, "--translation", "one two")
    assert stdout(kav("attention", path, *options)) == f"one two\n{picture}\n"
    with Image.open(picture) as image:
        assert image.size[0] == 880  # as for each recording
    long = recordings.write(tmp_path / "long.wav", recordings.tone(3.0))
    check_error(kav("attention", long, *options), "positions. Received: 75")
    check_error(kav("attention", "a text", *options), "no such recording")


def test_attention_over_a_document_is_a_page_of_text(kav, summaries, tmp_path):
    picture, sizes = tmp_path / "weights.png", []
    options = ("--output", picture, "--translation", "the dog")
    for count in (2, 40):
        stdout(kav("attention", "the dog " * count, "--model", summaries[0], *options))
        with Image.open(picture) as image:
            sizes.append(image.size)
    assert [width for width, _ in sizes] == [880, 880]
    assert sizes[0][1] < sizes[1][1] < 1000


def test_analyses_of_heads(kav, other, tmp_path):
    task, model, data = other
    options = ("--analysis", "locality", "--data", data, "--output", tmp_path)
    output = stdout(kav("analyse", model, *options))
    with open(tmp_path / "model.locality.csv", newline="") as rows:
        found = {row["place"]: int(row["tokens"]) for row in csv.DictReader(rows)}
    assert {"encoder", "decoder", "cross"} == set(found)
    # Positions of 40 ms: of 0.1, 0.2, 0.3 and 0.1 seconds.
    assert task.reads_text or found["encoder"] == 3 + 5 + 8 + 3
    assert "pairs)" in output


def test_analyses_that_a_task_does_not_have(kav, other, run_folder, tmp_path):
    task, model, data = other
    options = ("--data", data, "--output", tmp_path / "out", "--analysis")
    refused = f"does not support models for {task.name}"
    check_error(kav("analyse", model, *options, "bleu-by-length"), refused)
    if not task.reads_text:
        check_error(kav("analyse", model, *options, "contrastive"), refused)
    both = kav("analyse", model, run_folder, *options, "locality")
    check_error(both, "for the same task", f"model for {task.name}", "run for trans")


def test_the_demo_reads_recordings(speech, tmp_path):
    task, model = tasks.get("speech"), kav_package.load_model(speech[0])
    translator = AlignedTranslator(*model, beam_size=2)
    path = str(recordings.write(tmp_path / "a.wav", recordings.tone(0.5)))
    assert demo.sources_of(path, task) == [path]
    shown = demo.model_column("model", translator, [path], task)
    assert "0.48" in shown and "Numbers are seconds." in shown
    assert "Give a recording." in demo.model_column("model", translator, [], task)
    (tmp_path / "text.wav").write_text("no sound")
    told = demo.model_column("model", translator, [str(tmp_path / "text.wav")], task)
    assert "This is not a recording." in told


def test_the_demo_calls_no_text_a_recording():
    class Failing:
        def translate(self, text):
            raise ValueError("a fault of the model")

    with pytest.raises(ValueError, match="a fault of the model"):
        demo.model_column("model", Failing(), ["a text"], tasks.get("translation"))


@pytest.mark.slow
def test_the_page_of_the_demo_takes_recordings(speech, tmp_path):
    path = recordings.write(tmp_path / "a.wav", recordings.tone(0.5))
    with page_of(speech[0]) as address, path.open("rb") as file:
        config = httpx.get(f"{address}/config").json()
        sent = httpx.post(f"{address}/gradio_api/upload", files={"files": file})
    assert config["title"] == "Speech models"
    kinds = {part["type"] for part in config["components"]}
    assert "audio" in kinds and "textbox" not in kinds
    assert sent.status_code == 200


def test_the_demo_shows_models_for_one_task(kav, speech, run_folder):
    check_error(
        kav("demo", speech[0], run_folder), "The models must be for the same task"
    )


def test_samples_of_a_training_have_the_name_of_the_task(kav, summaries, tmp_path):
    model, data = summaries
    quick = ("--steps", 1, "--precision", "float32", "--score-sentences", 1)
    sizes = ("--width", 8, "--layers", 1, "--heads", 2, "--feed-forward", 16)
    place = ("--data", data, "--run", tmp_path / "run", "--vocabulary-size", 24)
    result = kav("train", "--task", "summarisation", *place, *quick, *sizes)
    assert result.exit_code == 0, result.output
    assert "\n  summary      " in result.stderr
    assert "translation  " not in result.stderr


def test_a_run_of_speech_is_examined(kav, speech, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(speech[0], run / "best")
    (run / "log.jsonl").write_text('{"event": "period", "step": 1}\n')
    assert f"kav transcribe --model {run / 'best'}" in kav("doctor", run).stdout
