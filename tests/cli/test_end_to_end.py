"""From a folder of text files to a served translation, and on after interruptions."""

import json
from dataclasses import replace

import pytest

from keras_attnvariants import presets

pytestmark = [
    pytest.mark.slow,
    # Keras' variables do not know the newest argument of NumPy's protocol.
    pytest.mark.filterwarnings("ignore:__array__:DeprecationWarning"),
]

LANGUAGES = ("--source", "xx", "--target", "yy")
SIZES = ("--layers", 1, "--width", 32, "--feed-forward", 64, "--heads", 2)


def check(result) -> str:
    assert result.exit_code == 0, result.output
    return result.stdout


def read_log(folder) -> list[dict]:
    lines = (folder / "log.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_train_evaluate_export_translate(run, corpus_folder, tmp_path):
    folder, saved = tmp_path / "run", tmp_path / "saved"
    corpus = ("--data", corpus_folder, *LANGUAGES)
    schedule = ("--learning-rate", "0.01", "--warmup-steps", 30, "--dropout", 0.1)
    settings = (*schedule, "--validate-every", 20, "--batch-tokens", 1024)
    training = ("--vocabulary-size", 50, *SIZES, *settings, "--run", folder)
    output = check(run("train", *corpus, *training, "--steps", 40))
    assert "train: 600 pairs read, 600 written, no bad lines" in output
    assert f"evaluate.py --model {folder}" in output

    check(run("train", *corpus, *training, "--steps", 60, "--bleu-sentences", 5))
    events = read_log(folder)
    steps = [event["step"] for event in events if event["event"] == "period"]
    assert steps == [20, 40, 60]  # it went on, rather than starting again

    result = run("train", *corpus, *training, "--width", 16)
    assert result.exit_code == 2
    assert "other settings" in result.stderr
    assert "hidden_dim" in result.stderr
    result = run("train", *corpus, *training, "--vocabulary-size", 51)
    assert result.exit_code == 2
    assert "vocabulary of 50" in result.stderr

    limits = ("--max-tokens", 32, "--beam-size", 2)
    output = check(run("export", "--model", folder, "--output", saved, *limits))
    assert str(saved / "1") in output
    assert "translate_ids" in output

    lines = tmp_path / "translations"
    systems = ("--model", folder, "--saved-model", saved, "--beam-size", 2)
    output = check(run("evaluate", *corpus, *systems, "--output", lines))
    for name in ("BLEU", "chrF2", "TER"):
        scores = [row for row in output.splitlines() if row.split()[:1] == [name]]
        assert len(scores) == 2
        assert scores[0] == scores[1]
        assert "version:" in scores[0]

    sources = (corpus_folder / "test.xx").read_text().splitlines()
    texts = sources[:3]
    by_model = check(run("translate", *texts, "--model", folder, "--beam-size", 2))
    by_saved = check(
        run("translate", "--saved-model", saved, input="\n".join(texts) + "\n")
    )
    assert by_model == by_saved
    assert by_model.splitlines() == lines.read_text().splitlines()[:3]


def test_quickstart_on_a_small_corpus(
    run, recipe, corpus_folder, tmp_path, monkeypatch
):
    small = presets.get("kav/hc-all/bible")
    sizes = {"vocabulary_size": 50, "num_layers": 1, "hidden_dim": 16, "num_heads": 2}
    small = replace(
        small,
        options={**small.options, **sizes},
        training=replace(small.training, batch_tokens=512, steps=1000),
    )
    monkeypatch.setattr(presets, "get", lambda name: small)
    quickstart = recipe("quickstart")
    monkeypatch.setattr(quickstart, "CORPUS", str(corpus_folder))
    monkeypatch.setattr(quickstart, "SOURCE", "xx")
    monkeypatch.setattr(quickstart, "TARGET", "yy")
    monkeypatch.setattr(quickstart, "VALIDATE_EVERY", 5)
    folder, saved = tmp_path / "run", tmp_path / "saved"
    where = ("--run", folder, "--output", saved)
    output = check(run("quickstart", "--minutes", 0.1, *where))
    sources = (corpus_folder / "test.xx").read_text().splitlines()
    for place in (0, 4, 8, 12, 16):
        assert f"source       {sources[place]}\n" in output
    assert output.count("translation  ") == 5
    assert "BLEU|" in output
    assert f"--saved-model {saved}" in output
    step = read_log(folder)[-1]["step"]
    assert 5 <= step < 1000  # time was up

    check(run("quickstart", "--minutes", 0.1, *where))
    assert read_log(folder)[-1]["step"] == step
    assert [path.name for path in sorted(saved.iterdir())] == ["1", "2"]
