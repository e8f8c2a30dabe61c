"""The picture of what a model attends to, by task."""

import numpy as np
import pytest
from matplotlib.patches import Rectangle

import keras_attnvariants as kav
from keras_attnvariants.data.tasks import TASKS
from keras_attnvariants.evaluation import attention_pictures as pictures
from keras_attnvariants.evaluation.aligned_translations import Words
from keras_attnvariants.evaluation.aligned_translations import words
from keras_attnvariants.evaluation.attention_maps import AttentionExample
from keras_attnvariants.models.speech import log_mels
from keras_attnvariants.models.speech import mel_filters
from keras_attnvariants.models.speech import samples_to_ids
from tests.data import recordings

LEARNED = kav.DotProductAttention(num_heads=2)
DOCUMENT = "The old house costs $x^ and $5. " * 6 + "A mouse lives there, too."
SUMMARY = "A mouse costs $5."


def cross_weights(example):
    """Those of the highest layer, `[T, S]`."""
    [*_, block] = example.model.decoder_blocks
    return example.scores[block.name]["cross"][0].mean(axis=0)


@pytest.fixture(scope="module")
def speech(tmp_path_factory):
    """A recording of a low and a high tone, 1.23 seconds, and its transcript."""
    samples = [recordings.tone(0.615, pitch=pitch) for pitch in (300.0, 2000.0)]
    path = tmp_path_factory.mktemp("speech") / "a.wav"
    recordings.write(path, np.concatenate(samples))
    model, subwords = recordings.toy_model()
    tokenizer = kav.data.AudioTokenizer(subwords)
    return AttentionExample(model, tokenizer, str(path), "one two")


@pytest.fixture(scope="module")
def summary():
    tokenizer = kav.Tokenizer.train([DOCUMENT, SUMMARY] * 9, 60, may_shrink=True)
    model = kav.Transformer(
        tokenizer.vocabulary_size, 2, 8, 8, LEARNED, LEARNED, LEARNED
    )
    return AttentionExample(model, tokenizer, DOCUMENT, SUMMARY)


def test_every_task_has_a_picture():
    assert {task.picture for task in TASKS.values()} == set(pictures.PICTURES)


def test_a_spectrogram_and_its_alignment_have_the_same_seconds(speech):
    above, below = pictures.spectrogram(speech).axes
    assert above.get_xlim() == below.get_xlim() == (0, 1.23)
    [features], [weights] = above.images, below.images
    assert features.get_extent() == [0, 1.23, 0, 80]
    assert features.get_array().shape == (80, 123)
    # In the first half the filters of the low tone are loud, then those of the other.
    first, second = np.array_split(features.get_array(), 2, axis=1)
    low, high = (round(pitch_place(above, pitch)) for pitch in (300, 2000))
    assert first[low].mean() > 0.9 > -0.9 > second[low].mean()
    assert second[high].mean() > 0.9 > -0.9 > first[high].mean()
    # Positions of 40 ms, of which the recording fills the last one in part.
    tokens = [text.get_text() for text in below.get_yticklabels()]
    assert tokens == speech.axes["cross"][0] and tokens[-1] == "</s>"
    assert weights.get_extent() == [0, 31 * 0.04, len(tokens) - 0.5, -0.5]
    np.testing.assert_allclose(weights.get_array(), cross_weights(speech), atol=1e-6)


def pitch_place(axis, hertz):
    """The row of a frequency, between the labels beside it."""
    known = [
        float(text.get_text().removesuffix(" Hz").replace(",", ""))
        for text in axis.get_yticklabels()
    ]
    return np.interp(hertz, known, axis.get_yticks()) - 0.5


@pytest.mark.parametrize("hertz", pictures.HERTZ)
def test_labels_stand_at_their_frequencies(speech, hertz):
    ids = samples_to_ids(recordings.tone(0.5, pitch=float(hertz)))
    loudness = np.asarray(log_mels(ids[None], mel_filters())[0]).mean(axis=0)
    axis = pictures.spectrogram(speech).axes[0]
    assert abs(pitch_place(axis, hertz) - loudness.argmax()) <= 1


def test_a_document_is_shaded_by_the_weights_of_its_words(summary):
    figure = pictures.document(summary)
    figure.canvas.draw()  # in which `$` begins no formula
    [axis] = figure.axes
    *texts, what = [text.get_text() for text in axis.texts]
    bold = [text for text in axis.texts if text.get_fontweight() == "bold"]
    assert "".join(text.get_text() for text in bold) == SUMMARY.replace(" ", "")
    assert "".join(texts) == f"{SUMMARY}{DOCUMENT}".replace(" ", "")
    assert what.startswith("cross-attention of layer 2, mean over heads: the darkest")
    boxes = [box for box in axis.patches if isinstance(box, Rectangle)]
    shades = np.array([box.get_alpha() for box in boxes])
    # The weights of all pieces of a word count, those of all tokens of the summary.
    weights = cross_weights(summary)[:-1].sum(axis=0)
    found = words(summary.source_pieces)
    sums = [
        sum(
            weights[place] for place, word in enumerate(found.numbers) if word == number
        )
        for number in range(len(boxes))
    ]
    assert len(weights) > len(sums)
    np.testing.assert_allclose(shades, np.array(sums) / max(sums), rtol=1e-5)
    assert what.endswith(f"{max(sums) / sum(sums):.0%}")


def test_lines_keep_marks_beside_their_words():
    texts = ["word", ","] * 60
    spaced = [True, False] * 60
    places = pictures.layout(Words(texts, spaced, []))
    lines = [line for _, line, _ in places]
    assert lines[::2] == lines[1::2] and lines[-1] >= 3
    limit = 72 * pictures.WIDTH - pictures.MARGIN
    assert all(left >= pictures.MARGIN for left, _, _ in places)
    assert all(left + wide <= limit for left, _, wide in places)


def test_lines_break_in_what_has_no_spaces():
    places = pictures.layout(Words(["word"] * 60, [False] * 60, []))
    assert places[-1][1] >= 2
    assert max(left + wide for left, _, wide in places) <= 72 * pictures.WIDTH


def test_a_model_without_cross_attention_has_no_such_picture(speech, summary):
    with pytest.raises(ValueError, match="No layer 3 of this model has attention"):
        pictures.document(summary, 3)
    with pytest.raises(ValueError, match="No layer 3 of this model has attention"):
        pictures.spectrogram(speech, 3)
