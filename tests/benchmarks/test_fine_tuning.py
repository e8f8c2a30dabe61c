"""Data and records of the measurements of fine-tuning."""

import json

import pytest

from keras_attnvariants.data import load_corpus


@pytest.fixture
def script(benchmark, monkeypatch, corpus_cache):
    script = benchmark("fine_tuning")
    monkeypatch.setattr(script, "SOURCE", "xx")
    monkeypatch.setattr(script, "TARGET", "yy")
    monkeypatch.setenv("KAV_CACHE", str(corpus_cache))
    return script


def test_the_first_pairs_alone_are_trained_on(script, corpus_folder, tmp_path):
    corpus = script.first_pairs(str(corpus_folder), tmp_path / "first", 5, "test")
    whole = load_corpus(corpus_folder, "xx", "yy")
    assert [len(side) for side in corpus.read_lines("train")] == [5, 5]
    assert corpus.read_lines("train")[1] == whole.read_lines("train")[1][:5]
    for split in ("validation", "test"):
        assert corpus.read_lines(split) == whole.read_lines(split)


def test_figures_of_several_calls_are_in_one_file(script, tmp_path):
    path = tmp_path / "results" / "figures.json"
    script.add(path, "adapt/tuned/1", {"bleu": 1.5})
    script.add(path, "adapt/tuned/2", {"bleu": 2.5})
    script.add(path, "adapt/tuned/1", {"bleu": 3.5})
    expected = {"adapt/tuned/1": {"bleu": 3.5}, "adapt/tuned/2": {"bleu": 2.5}}
    assert json.loads(path.read_text()) == expected


def test_losses_by_update(script):
    events = [
        {"event": "period", "step": 25, "val_loss": 3.50001},
        {"event": "averaged", "step": 25, "val_loss": 1.0},
    ]
    assert script.losses_of(events) == {25: 3.5}


def test_lora_trains_a_small_share(script):
    sizes = script.sizes_of_lora(4)
    assert 0 < sizes["trained_weights"] < 0.05 * sizes["weights"]
