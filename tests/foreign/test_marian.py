"""Models of Marian against its equations, and folders that are refused."""

import json

import numpy as np
import pytest

from keras_attnvariants.data import sentencepiece_models
from keras_attnvariants.foreign import converted
from keras_attnvariants.foreign import read_marian
from keras_attnvariants.foreign.conversion import ForeignArrays
from keras_attnvariants.foreign.marian import take_output
from tests.foreign import folders
from tests.reference import marian

SOURCE = folders.subwords(folders.ENGLISH)
TARGET = folders.subwords(folders.GERMAN)
TOKENS = folders.numbered(folders.pieces(SOURCE, TARGET))


def shared(folder, **options):
    """A folder with one vocabulary for both sides."""
    weights = folders.arrays(len(TOKENS))
    files = {"opus.vocab.yml": TOKENS}
    folders.write_marian(folder, weights, files, (SOURCE, TARGET), **options)
    return weights


def compare(read, weights, tokens, targets, activation="relu"):
    """Compares the logits of sentences with those of the equations."""
    model, tokenizer = converted(read)
    theirs = [{t: i for i, t in side} for side in (tokens, targets)]
    sentences = ["the old mouse", "seven zebras"], ["das alte Haus", "eine Maus"]
    sides = (tokenizer, tokenizer.target)
    pieces = [one.split(texts) for one, texts in zip(sides, sentences, strict=True)]
    sources, labels = (
        [[ids.get(piece, 1) for piece in row] for row in rows]
        for ids, rows in zip(theirs, pieces, strict=True)
    )
    ours = [one.encode(texts) for one, texts in zip(sides, sentences, strict=True)]
    longest = max(map(len, ours[0]))
    columns = [theirs[1][p] for p in tokenizer.target.pieces[4:] if p in theirs[1]]
    places = [i for i, p in enumerate(tokenizer.target.pieces) if p in theirs[1]]
    assert places[:2] == [1, 3]
    for i in range(2):
        expected = marian.logits(
            weights, folders.HEADS, [*sources[i], 0], labels[i], activation
        )
        source = np.pad(ours[0][i], (0, longest - len(ours[0][i])))
        inputs = {
            "source_ids": source[None],
            "target_ids": np.array([[2, *ours[1][i]]]),
        }
        found = np.asarray(model(inputs))[0]
        np.testing.assert_allclose(
            found[:, places], expected[:, [1, 0, *columns]], atol=1e-4
        )
        assert found[:, [0, 2]].max() < -50
    return model, tokenizer


@pytest.mark.parametrize("activation", ["relu", "swish", "gelu"])
def test_logits_are_those_of_the_equations(tmp_path, activation):
    weights = shared(tmp_path, **{"transformer-ffn-activation": activation})
    model, tokenizer = compare(
        read_marian(tmp_path), weights, TOKENS, TOKENS, activation
    )
    assert model.source_eos
    assert model.get_config()["tie_embeddings"] == "all"
    assert tokenizer.target is not tokenizer


def test_two_vocabularies(tmp_path):
    sides = [folders.numbered(folders.pieces(model)) for model in (SOURCE, TARGET)]
    weights = folders.arrays(*map(len, sides))
    files = dict(zip(("a.yml", "b.yml"), sides, strict=True))
    folders.write_marian(tmp_path, weights, files, ())
    for name, model in (("x.model", SOURCE), ("y.model", TARGET)):
        (tmp_path / name).write_bytes(model)
    read = read_marian(
        tmp_path,
        tmp_path / "model.npz",
        [tmp_path / name for name in files],
        [tmp_path / "x.model", tmp_path / "y.model"],
    )
    model, _ = compare(read, weights, *sides)
    assert model.get_config()["tie_embeddings"] == "decoder"
    assert model.source_vocabulary_size != model.vocabulary_size


def test_a_vocabulary_of_marian_s_own_sentencepiece(tmp_path):
    ids = {"unk_id": 1, "eos_id": 0, "bos_id": -1}
    joint = folders.subwords(f"{folders.ENGLISH}\n{folders.GERMAN}", 90, **ids)
    tokens = [p.piece for p in sentencepiece_models.read(joint).pieces]
    weights = folders.arrays(len(tokens))
    folders.write_marian(tmp_path, weights, {}, ())
    (tmp_path / "vocab.spm").write_bytes(joint)
    tokens = list(enumerate(tokens))
    _, tokenizer = compare(read_marian(tmp_path), weights, tokens, tokens)
    assert tokenizer.target is tokenizer


def test_a_projection_of_its_own(tmp_path):
    weights = folders.arrays(len(TOKENS))
    rng = np.random.default_rng(1)
    output = rng.normal(scale=0.25, size=(folders.WIDTH, len(TOKENS))).astype("float32")
    weights["decoder_ff_logit_out_W"] = output
    files = {"vocab.yml": TOKENS}
    folders.write_marian(tmp_path, weights, files, (SOURCE, TARGET))
    model, _ = compare(read_marian(tmp_path), weights, TOKENS, TOKENS)
    assert model.get_config()["tie_embeddings"] == "none"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"transformer-decoder-autoreg": "average-attention"},
            "layers that this package does not have.*autoreg.*average-attention",
        ),
        ({"transformer-preprocess": "n"}, "transformer-preprocess.*Received: 'n'"),
        ({"type": "s2s"}, "option type must be 'transformer'.*'s2s'"),
        ({"enc-depth": "deep"}, "enc-depth must be a number. Received: 'deep'"),
        ({"enc-depth": 3}, "must have encoder_l3_self_Wq, with the layers"),
        ({"dec-depth": 0}, "num_decoder_layers"),
        ({"transformer-dim-ffn": 8}, "shape of the target variable"),
    ],
)
def test_models_that_do_not_fit(tmp_path, options, message):
    shared(tmp_path, **options)
    with pytest.raises(ValueError, match=message):
        converted(read_marian(tmp_path))


def test_weights_of_unknown_layers_are_named(tmp_path):
    weights = folders.arrays(len(TOKENS)) | {"Wpos": np.zeros((9, 16), "float32")}
    folders.write_marian(tmp_path, weights, {"vocab.yml": TOKENS}, (SOURCE, TARGET))
    with pytest.raises(ValueError, match="does not have. Received: Wpos"):
        converted(read_marian(tmp_path))


@pytest.mark.parametrize("kept", [0, 9, 5000])
def test_a_truncated_file_of_weights(tmp_path, kept):
    shared(tmp_path)
    data = (tmp_path / "model.npz").read_bytes()
    (tmp_path / "model.npz").write_bytes(data[:kept])
    with pytest.raises(ValueError, match=r"model\.npz is not a file of arrays"):
        read_marian(tmp_path)


def test_pickles_are_not_read(tmp_path):
    class Bomb:
        def __reduce__(self):
            return pytest.fail, ("a pickle was read",)

    shared(tmp_path)
    array = np.array([Bomb()], object)
    np.savez(tmp_path / "model.npz", **{"special:model.yml": array})
    with pytest.raises(ValueError, match="not a file of arrays"):
        read_marian(tmp_path)


def test_arrays_that_are_no_model(tmp_path):
    np.savez(tmp_path / "model.npz", a=np.zeros(3))
    with pytest.raises(ValueError, match=r"a model of Marian, with special:model\.yml"):
        read_marian(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('"a": 0\n"b": 2\n', "each token a number, from 0 on"),
        ("- a\n- b\n", "must be YAML, names with values"),
        ('"a: 0\n', "must be YAML"),
        ('"</s>": 0\n"<unk>": 1\n"qq": 2\n', "pieces of the SentencePiece model"),
        ('"</s>": 0\n"a": 1\n', "must have the token <unk>"),
        ('"</s>": 0\n"<unk>": 1\n"▁": 2\n', "as many as the model has embeddings"),
    ],
)
def test_vocabularies_that_do_not_fit(tmp_path, text, message):
    shared(tmp_path)
    (tmp_path / "opus.vocab.yml").write_text(text, "utf-8")
    with pytest.raises(ValueError, match=message):
        converted(read_marian(tmp_path))


def test_files_that_are_missing_or_several(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"--weights must say.*Received: none"):
        read_marian(tmp_path)
    shared(tmp_path)
    (tmp_path / "second.vocab.yml").write_text(json.dumps({}))
    with pytest.raises(FileNotFoundError, match="--vocabulary must say which.*opus"):
        read_marian(tmp_path)
    (tmp_path / "second.vocab.yml").unlink()
    (tmp_path / "target.spm").unlink()
    with pytest.raises(FileNotFoundError, match="target.spm"):
        read_marian(tmp_path)
    with pytest.raises(ValueError, match="`--vocabulary` must be given once.*3 files"):
        read_marian(tmp_path, None, ["a.yml"] * 3)


def test_the_output_matrix_is_read_in_either_order():
    matrix = np.arange(6, dtype="float32").reshape(2, 3)  # [width, V]
    for name, stored in (("Wt", matrix.T), ("W", matrix)):
        arrays = ForeignArrays({f"decoder_ff_logit_out_{name}": stored}, "model.npz")
        assert (take_output(arrays) == matrix).all()
    assert take_output(ForeignArrays({}, "model.npz")) is None
