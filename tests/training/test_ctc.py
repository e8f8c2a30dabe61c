"""A training with the CTC loss of the encoder's outputs."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_attnvariants.attention import DotProductAttention
from keras_attnvariants.models import Seq2SeqLSTM
from keras_attnvariants.models import SpeechFrontEnd
from keras_attnvariants.models import Transformer
from keras_attnvariants.training import train
from keras_attnvariants.training.guided_alignment import guided
from tests.reference.speech import batch_of
from tests.training.toy import toy_config


def data(step):
    """The same batch again and again."""
    source_ids = batch_of(6400, 4000)
    target_ids = np.array([[2, 5, 6, 6], [2, 7, 0, 0]], "int32")
    labels = np.array([[5, 6, 6, 3], [7, 3, 0, 0]], "int32")
    inputs = {"source_ids": source_ids, "target_ids": target_ids}
    example = inputs, labels, (labels != 0).astype("float32")
    return tf.data.Dataset.from_tensors(example).repeat()


def trained(folder, **settings):
    """A model after a run, and the logged losses."""
    keras.utils.set_random_seed(2)
    attention = DotProductAttention(2)
    front_end = SpeechFrontEnd(16, num_time_masks=0, num_mel_masks=0)
    sizes = {"dropout": 0.0, "max_length": 16, "source_embedding": front_end}
    model = Transformer(9, 1, 16, 32, *[attention] * 3, **sizes)
    config = toy_config(steps=20, validate_every=100, epsilon=1e-3, **settings)
    history = train(model, None, data, folder, config, verbose=0)
    assert history is not None
    assert model.ctc_weight is None
    return model


def ctc(model):
    inputs, *_ = next(iter(data(0)))
    model.ctc_weight = 1.0
    model(inputs, training=True)
    model.ctc_weight = None
    return float(model.losses[0])


@pytest.mark.parametrize("accumulate", [1, 2])
def test_training_lowers_the_loss_that_it_has(tmp_path, accumulate):
    settings = {"learning_rate": 5e-3, "accumulate": accumulate}
    without = ctc(trained(tmp_path / "without", **settings))
    assert ctc(trained(tmp_path / "with", ctc_weight=0.5, **settings)) < without / 2


def test_models_without_an_encoder_to_read_are_refused():
    config = toy_config(ctc_weight=0.3)
    with (
        pytest.raises(ValueError, match=r"`ctc_weight` needs a Transf.*a Seq2SeqLSTM"),
        guided(Seq2SeqLSTM(20, 8, 8), config),
    ):
        pass
    with pytest.raises(ValueError, match="`ctc_weight` must be a positive number"):
        toy_config(ctc_weight=0.0)
