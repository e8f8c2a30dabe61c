"""MarianMT of Hugging Face against its equations, and folders that are refused."""

import json

import numpy as np
import pytest

import keras_attnvariants as kav
from keras_attnvariants.foreign import converted
from keras_attnvariants.foreign import read_huggingface
from tests.foreign import folders
from tests.reference import marian

pytest.importorskip("safetensors")

SOURCE = folders.subwords(folders.ENGLISH)
TARGET = folders.subwords(folders.GERMAN)
TOKENS = folders.numbered(folders.pieces(SOURCE, TARGET))
SIZES = {"epsilon": 1e-5, "exponent_width": 0}


def written(folder, **options):
    """A folder with one vocabulary; the weights by Marian's names."""
    weights = folders.with_padding(folders.arrays(len(TOKENS)))
    folders.write_huggingface(folder, weights, TOKENS, (SOURCE, TARGET), **options)
    return weights


def change(folder, **options):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | options))


def compare(folder, weights, tokens, targets):
    """Compares the logits of a sentence with those of the equations."""
    model, tokenizer = converted(read_huggingface(folder))
    [source], [target] = (
        tokenizer.encode(["the old mouse"]),
        tokenizer.target.encode(["das alte Haus"]),
    )
    theirs = [{t: i for i, t in side} for side in (tokens, targets)]
    pieces = tokenizer.pieces, tokenizer.target.pieces
    pad = len(targets)
    expected = marian.logits(
        weights,
        folders.HEADS,
        [*(theirs[0][pieces[0][i]] for i in source), 0],
        [theirs[1][pieces[1][i]] for i in target],
        "swish",
        SIZES | {"start": pad},
    )
    inputs = {
        "source_ids": np.array([source]),
        "target_ids": np.array([[2, *target]]),
    }
    found = np.asarray(model(inputs))[0]
    columns = [1, pad, 0, *(theirs[1][p] for p in pieces[1][4:])]
    np.testing.assert_allclose(found[:, 1:], expected[:, columns], atol=1e-4)
    return model, tokenizer


def test_logits_are_those_of_the_equations(tmp_path):
    weights = written(tmp_path)
    model, _ = compare(tmp_path, weights, TOKENS, TOKENS)
    assert model.search_settings.beam_size == 3
    assert model.max_length == 64


def test_settings_without_meaning_for_the_model_are_left_aside(tmp_path):
    weights = written(tmp_path)
    change(tmp_path, extra_pos_embeddings=58101, num_hidden_layers=2)
    compare(tmp_path, weights, TOKENS, TOKENS)


def test_two_vocabularies(tmp_path):
    sides = [folders.numbered(folders.pieces(model)) for model in (SOURCE, TARGET)]
    weights = folders.with_padding(folders.arrays(*map(len, sides)))
    folders.write_huggingface(tmp_path, weights, sides[0], (SOURCE, TARGET), sides[1])
    compare(tmp_path, weights, *sides)


def test_a_model_is_saved_loaded_and_searched(tmp_path):
    written(tmp_path / "theirs")
    model, tokenizer = converted(read_huggingface(tmp_path / "theirs"))
    before = kav.Translator(model, tokenizer, xla=False).translate(["the old horse"])
    kav.save_model(
        model, tmp_path / "ours", tokenizer, extra_files={"README.md": b"CC"}
    )
    assert (tmp_path / "ours" / "README.md").read_bytes() == b"CC"
    loaded = kav.load_model(tmp_path / "ours")
    assert loaded.tokenizer.sha256 == tokenizer.sha256
    translator = kav.Translator(*loaded, xla=False)
    assert translator.translate(["the old horse"]) == before
    scores, lengths = translator.score(["the old horse"], ["das alte Haus"])
    assert scores[0] < 0
    assert lengths[0] == 1 + len(tokenizer.target.encode(["das alte Haus"])[0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model_type": "t5"}, "model_type` must be one of 'marian'.*'t5'"),
        ({"activation_function": "tanh"}, "activation_function` must be.*'tanh'"),
        ({"add_final_layer_norm": True}, "asks for `add_final_layer_norm`"),
        ({"encoder_layers": None}, "must have `encoder_layers`, a number"),
        ({"encoder_layers": 9}, "must have model.encoder.layers.2"),
        ({"encoder_layers": 1}, r"does not have. Received: model\.encoder\.layers\.1"),
        ({"encoder_ffn_dim": 9}, "must be equal. Received: 9, 24"),
        ({"pad_token_id": 9999}, "token for padding must be in the vocabulary"),
        ({"share_encoder_decoder_embeddings": False}, "must have model.encoder.embed"),
    ],
)
def test_models_that_do_not_fit(tmp_path, options, message):
    written(tmp_path)
    change(tmp_path, **options)
    with pytest.raises(ValueError, match=message):
        converted(read_huggingface(tmp_path))


def test_positions_may_be_among_the_weights(tmp_path):
    import safetensors.numpy

    written(tmp_path)
    path = tmp_path / "model.safetensors"
    weights = safetensors.numpy.load_file(path)
    name = "model.encoder.embed_positions.weight"
    fixed = np.zeros((64, folders.WIDTH), "float16")
    safetensors.numpy.save_file({**weights, name: fixed}, path)
    converted(read_huggingface(tmp_path))


@pytest.mark.parametrize("kept", [0, 5, 1000])
def test_a_truncated_file_of_weights(tmp_path, kept):
    written(tmp_path)
    path = tmp_path / "model.safetensors"
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(
        ValueError, match=r"model\.safetensors is cut short or does not hold"
    ):
        read_huggingface(tmp_path)


def test_weights_that_are_not_finite(tmp_path):
    weights = folders.with_padding(folders.arrays(len(TOKENS)))
    weights["encoder_l1_self_bq"][0, 0] = np.inf
    folders.write_huggingface(tmp_path, weights, TOKENS, (SOURCE, TARGET))
    with pytest.raises(ValueError, match=r"finite floats. Received: .*q_proj\.bias"):
        converted(read_huggingface(tmp_path))


@pytest.mark.parametrize(
    "name",
    ["config.json", "model.safetensors", "source.spm", "target.spm", "vocab.json"],
)
def test_a_missing_file_is_named(tmp_path, name):
    written(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises((OSError, ValueError), match=name):
        read_huggingface(tmp_path)


def test_pickled_weights_are_not_read(tmp_path):
    written(tmp_path)
    (tmp_path / "model.safetensors").rename(tmp_path / "pytorch_model.bin")
    with pytest.raises(FileNotFoundError, match="pytorch_model.bin: Mar"):
        read_huggingface(tmp_path)
