import pytest

from keras_attnvariants.data import Tokenizer
from tests.data.toy import toy_pairs
from tests.data.toy import write_pairs


@pytest.fixture(scope="session")
def toy_texts():
    return [text for pair in toy_pairs(300) for text in pair]


@pytest.fixture(scope="session")
def tokenizer(toy_texts):
    return Tokenizer.train(toy_texts, vocabulary_size=96)


@pytest.fixture
def toy_folder(tmp_path):
    pairs = toy_pairs(360)
    folder = tmp_path / "toy"
    write_pairs(folder, "train", pairs[:300])
    write_pairs(folder, "valid", pairs[300:330])
    write_pairs(folder, "test", pairs[330:])
    return folder


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"
