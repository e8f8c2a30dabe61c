"""The weights that a model gives to a sentence, by place, layer and head."""

import numpy as np
import pytest

import keras_attnvariants as kav
from keras_attnvariants.evaluation.attention_maps import AttentionExample
from keras_attnvariants.evaluation.attention_maps import Panel
from keras_attnvariants.evaluation.attention_maps import figure_of
from keras_attnvariants.evaluation.attention_maps import label

SOURCE, TARGET = "ein kleines Haus", "a small house"
LEARNED = kav.DotProductAttention(num_heads=2)


@pytest.fixture(scope="module")
def tokenizer():
    return kav.Tokenizer.train([SOURCE, TARGET, "eine kleine Maus"], 22)


def example(tokenizer, *places, layers=2):
    model = kav.Transformer(22, layers, 8, 8, *places, max_length=40)
    return AttentionExample(model, tokenizer, SOURCE, TARGET)


def check_panels(rows):
    for panel in (panel for row in rows for panel in row):
        assert panel.weights.shape == (len(panel.rows), len(panel.columns))
        # Each row of weights is a distribution, or empty at the start.
        sums = panel.weights.sum(-1)
        assert np.all(np.isclose(sums, 1, atol=1e-3) | (sums < 1))
        assert panel.weights.min() >= 0


def test_all_heads_of_the_highest_layer_with_weights(tokenizer):
    first = kav.DotProductAttention(num_heads=1)
    found = example(tokenizer, LEARNED, LEARNED, [first, None])
    rows = found.rows()
    check_panels(rows)
    titles = [[panel.title for panel in row] for row in rows]
    assert titles == [
        ["encoder self-attention\nlayer 2, head 1", "\nhead 2"],
        ["decoder self-attention\nlayer 2, head 1", "\nhead 2"],
        ["cross-attention\nlayer 1, head 1"],
    ]
    cross = rows[2][0]
    assert "".join(cross.columns).startswith("ein") and cross.rows[-1] == "</s>"
    assert [len(row) for row in found.rows(across=1)] == [1] * 5
    assert len(found.rows(depth=2)) == 2


@pytest.mark.parametrize("structure", [kav.Homogeneous((1, 1)), kav.Interleaved()])
def test_phrases_are_shown_by_their_tokens(tokenizer, structure):
    phrases = kav.PhraseAttention(num_heads=2, structure=structure)
    rows = example(tokenizer, LEARNED, LEARNED, phrases).rows()
    check_panels(rows)
    np.testing.assert_allclose(rows[-1][0].weights.sum(-1), 1, atol=1e-3)


def test_a_recurrent_model(tokenizer):
    model = kav.Seq2SeqLSTM(22, 8, 8, max_length=40)
    [[panel]] = AttentionExample(model, tokenizer, SOURCE, TARGET).rows()
    check_panels([[panel]])


def test_a_model_or_a_layer_without_weights(tokenizer):
    ngrams = kav.NeuralNgram(num_heads=2)
    causal = kav.NeuralNgram(num_heads=2, causal=True)
    with pytest.raises(ValueError, match="No layer of this model has attention"):
        example(tokenizer, ngrams, causal, None).rows()
    with pytest.raises(ValueError, match="No layer 3 of this model"):
        example(tokenizer, LEARNED, LEARNED, LEARNED).rows(depth=3)


def test_many_positions_have_small_cells_and_fewer_labels():
    names = [str(number) for number in range(700)]
    figure = figure_of([[Panel("", np.eye(700), names, names)]])
    assert max(figure.get_size_inches()) < 63
    assert len(figure.axes[0].get_xticks()) == len(figure.axes[0].get_yticks()) == 350


@pytest.mark.parametrize("text", ["", "Haus " * 50])
def test_texts_without_tokens_or_with_too_many(tokenizer, text):
    model = kav.Transformer(22, 1, 8, 8, LEARNED, LEARNED, LEARNED, max_length=40)
    with pytest.raises(ValueError, match="from 1 to 39 positions. Received: "):
        AttentionExample(model, tokenizer, text, TARGET)


def test_unknown_characters_are_shown_on_both_sides(tokenizer):
    model = kav.Transformer(22, 1, 8, 8, LEARNED, LEARNED, LEARNED, max_length=40)
    found = AttentionExample(model, tokenizer, "ein §", "a §")
    assert "".join(found.source_pieces) == "▁ein▁§"
    assert "".join(found.target_pieces) == "▁a▁§"


@pytest.mark.parametrize(
    ("piece", "text"), [("▁Mann", "Mann"), ("m", "-m"), (".", "."), ("▁", "_")]
)
def test_labels_are_words_and_what_continues_them(piece, text):
    assert label(piece) == text
