"""From a folder of text files to a served translation, with interruptions."""

import json

import pytest

from tests.cli.conftest import check_error
from tests.cli.conftest import stdout

pytestmark = [
    pytest.mark.slow,
    # Keras' variables lack the newest argument of NumPy's protocol.
    pytest.mark.filterwarnings("ignore:__array__:DeprecationWarning"),
]

LANGUAGES = ("--source", "xx", "--target", "yy")
SIZES = ("--layers", 1, "--width", 32, "--feed-forward", 64, "--heads", 2)


def read_log(folder) -> list[dict]:
    lines = (folder / "log.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_train_evaluate_export_translate(kav, corpus_folder, tmp_path):
    folder, saved = tmp_path / "run", tmp_path / "saved"
    corpus = ("--data", corpus_folder, *LANGUAGES)
    schedule = ("--learning-rate", "0.01", "--warmup-steps", 30, "--dropout", 0.1)
    settings = (*schedule, "--validate-every", 20, "--batch-tokens", 1024)
    training = ("--vocabulary-size", 50, *SIZES, *settings, "--run", folder)
    output = stdout(kav("train", *corpus, *training, "--steps", 40))
    assert "train: 600 pairs read, 600 written, no bad lines" in output
    assert f"kav evaluate --model {folder}" in output

    stdout(kav("train", *corpus, *training, "--steps", 60, "--score-sentences", 5))
    events = read_log(folder)
    steps = [event["step"] for event in events if event["event"] == "period"]
    assert steps == [20, 40, 60]  # it continued instead of starting again

    result = kav("train", *corpus, *training, "--width", 16)
    check_error(result, "other settings", "--width 16 instead of 32")
    result = kav("train", *corpus, *training, "--vocabulary-size", 51)
    check_error(result, "other settings", "--vocabulary-size 51 instead of 50")

    limits = ("--max-tokens", 32, "--beam-size", 2)
    output = stdout(kav("export", "--model", folder, "--output", saved, *limits))
    assert str(saved / "1") in output
    assert "translate_ids" in output

    lines = tmp_path / "translations"
    systems = ("--model", folder, "--saved-model", saved, "--beam-size", 2)
    stdout(kav("evaluate", *corpus, *systems[:2], *systems[4:], "--output", lines))
    output = stdout(kav("evaluate", *corpus, *systems))
    for name in ("BLEU", "chrF2", "TER"):
        scores = [row for row in output.splitlines() if row.split()[:1] == [name]]
        assert len(scores) == 2
        assert scores[0] == scores[1]
        assert "version:" in scores[0]

    sources = (corpus_folder / "test.xx").read_text().splitlines()
    texts = sources[:3]
    by_model = stdout(kav("translate", *texts, "--model", folder, "--beam-size", 2))
    by_saved = stdout(
        kav("translate", "--saved-model", saved, input="\n".join(texts) + "\n")
    )
    assert by_model == by_saved
    assert by_model.splitlines() == lines.read_text().splitlines()[:3]
