"""Texts in, texts out: order, shapes, empty and over-long texts, scores."""

import keras
import numpy as np
import pytest

import keras_attnvariants as kav
from keras_attnvariants import backend
from keras_attnvariants.decoding import Translation
from keras_attnvariants.decoding import Translator
from keras_attnvariants.decoding import beam_search
from tests.decoding.toys import EOS
from tests.decoding.toys import PAD
from tests.decoding.toys import UNK
from tests.decoding.toys import RecurrentModel
from tests.decoding.toys import numpy

WORDS = ["<pad>", "<unk>", "<bos>", "<eos>", "a", "b", "c", "d", "e"]
OPTIONS = {"max_length": 12, "min_length": 2, "block_unknown": True}
SHAPES = {"batch_sizes": (1, 16), "source_lengths": (4, 12)}


class Tokenizer:
    """One id per word of a known alphabet."""

    def __init__(self):
        self.num_encoded = 0

    def encode(self, texts):
        self.num_encoded += len(texts)
        return [
            [WORDS.index(word) if word in WORDS else UNK for word in text.split()]
            for text in texts
        ]

    def decode(self, ids):
        assert all(isinstance(token, int) for row in ids for token in row)
        return [" ".join(WORDS[token] for token in row if token > EOS) for row in ids]


class TrainableModel(RecurrentModel):
    """A model with a weight, the bias of one word, as Keras models have them."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.bias = keras.Variable(np.zeros(self.vocabulary_size), dtype="float32")
        self.variables = [self.bias]

    def step(self, *args, **kwargs):
        logits, *rest = super().step(*args, **kwargs)
        return logits + self.bias, *rest


def random_texts(count, longest=7, seed=0):
    random = np.random.default_rng(seed)
    return [
        " ".join(random.choice(WORDS[4:], size=random.integers(1, longest + 1)))
        for _ in range(count)
    ]


@pytest.fixture(scope="module")
def translator():
    return Translator(RecurrentModel(), Tokenizer(), xla=False, **OPTIONS, **SHAPES)


def reference(translator, text, n_best=1):
    """The translations of one text, by a search without buckets."""
    [ids] = translator.tokenizer.encode([text])
    source_ids = np.array([[*ids, PAD]], "int32")
    found = numpy(beam_search(translator.model, source_ids, n_best=n_best, **OPTIONS))
    texts = translator.tokenizer.decode(found.ids[0].tolist())
    return list(zip(texts, found.scores[0], found.log_probs[0], strict=True))


def test_order_is_kept_and_batches_change_nothing(translator):
    texts = random_texts(41)
    together = translator.translate(texts)
    assert together == [translator.translate([text])[0] for text in texts]
    assert len(set(together)) > 20
    for text, translation in list(zip(texts, together, strict=True))[:3]:
        assert translation == reference(translator, text)[0][0]


def test_nbest_has_the_scores_of_the_search(translator):
    texts = random_texts(2, seed=1)
    for text, found in zip(texts, translator.translate_nbest(texts), strict=True):
        assert len(found) == 4
        expected = reference(translator, text, n_best=4)
        for translation, (string, score, log_prob) in zip(found, expected, strict=True):
            assert isinstance(translation, Translation)
            assert translation.text == string
            assert translation.score == pytest.approx(score, abs=1e-4)
            assert translation.log_prob == pytest.approx(log_prob, abs=1e-4)


def test_empty_texts_do_not_touch_tokenizer_nor_model():
    class Untouchable:
        vocabulary_size, max_length = 9, 16

    tokenizer = Tokenizer()
    translator = Translator(Untouchable(), tokenizer)
    assert translator.translate([]) == []
    assert translator.translate(["", "  ", "\n\t\u3000"]) == ["", "", ""]
    assert translator.translate_nbest([""]) == [[Translation("", 0.0, 0.0)]]
    assert translator.num_compilations == tokenizer.num_encoded == 0


def test_empty_texts_among_others(translator):
    texts = random_texts(3)
    a, b, c = translator.translate(texts)
    assert translator.translate(["", *texts[:2], " ", texts[2]]) == ["", a, b, "", c]


def test_compilations_are_bounded_and_counted():
    translator = Translator(
        RecurrentModel(),
        Tokenizer(),
        beam_size=2,
        max_length=4,
        batch_sizes=(1, 4),
        source_lengths=(4, 8),
        xla=False,
    )
    random = np.random.default_rng(0)
    texts = random_texts(200)
    for _ in range(100):
        translator.translate(list(random.choice(texts, size=random.integers(1, 7))))
    assert translator.num_compilations == 4
    # Only what is new is compiled: one shape of a search for more hypotheses.
    translator.translate_nbest(["a b"], n_best=2)
    assert translator.num_compilations == 5


@pytest.mark.skipif(backend.name() != "tensorflow", reason="shapes are fixed on JAX")
def test_a_keras_model_without_xla_is_compiled_once_for_all_shapes():
    attention = kav.DotProductAttention(num_heads=2)
    model = kav.Transformer(9, 1, 8, 16, attention, attention, attention, max_length=12)
    free = Translator(model, Tokenizer(), xla=False, **OPTIONS, **SHAPES)
    fixed = Translator(model, Tokenizer(), xla=True, **OPTIONS, **SHAPES)
    texts = random_texts(20)
    for some in (texts, texts[:3], texts[5:6]):
        assert free.translate(some) == fixed.translate(some)
        np.testing.assert_allclose(
            free.score(some, some)[0], fixed.score(some, some)[0], atol=1e-4
        )
        samples = [each.sample(some, seed=4) for each in (free, fixed)]
        assert [x.text for x in samples[0]] == [x.text for x in samples[1]]
    assert free.num_compilations == 3 < fixed.num_compilations


def test_long_texts_are_truncated_counted_and_flagged_once():
    translator = Translator(
        RecurrentModel(), Tokenizer(), max_length=4, **SHAPES, xla=False
    )
    long = "a b c d " * 5
    with pytest.warns(UserWarning, match="more than 12 tokens"):
        [translation] = translator.translate([long])
    assert translation == translator.translate([" ".join(long.split()[:12])])[0]
    translator.translate([long, "a", long])  # a second warning would be an error
    assert translator.num_truncated == 3


def test_scores_of_texts(translator):
    texts = random_texts(7, seed=2)
    found = translator.translate_nbest(texts, n_best=1)
    targets = [best.text for [best] in found]
    log_probs, lengths = translator.score(texts, targets)
    assert log_probs.dtype == np.float32
    assert lengths.tolist() == [len(target.split()) + 1 for target in targets]
    expected = [best.log_prob for [best] in found]
    np.testing.assert_allclose(log_probs, expected, atol=1e-4)
    alone = [
        translator.score([source], [target])[0][0]
        for source, target in zip(texts, targets, strict=True)
    ]
    np.testing.assert_allclose(log_probs, alone, atol=1e-4)
    assert translator.score([], [])[0].shape == (0,)


def test_tokens_and_their_scores(translator):
    texts = [*random_texts(5, seed=3), ""]
    plain = translator.translate_nbest(texts, n_best=2)
    found = translator.translate_nbest(texts, n_best=2, token_scores=True)
    assert found[-1] == [Translation("", 0.0, 0.0)]
    for one, other in zip(plain[:-1], found[:-1], strict=True):
        assert [x[:3] for x in one] == [x[:3] for x in other]
        for translation in other:
            assert translation.tokens[-1] == EOS
            words = [WORDS[token] for token in translation.tokens[:-1]]
            assert translation.text.split() == words
            total = sum(translation.token_log_probs)
            assert total == pytest.approx(translation.log_prob, abs=1e-4)


def test_every_token_of_given_texts_is_scored(translator):
    sources, targets = random_texts(7, seed=2), [*random_texts(6, seed=5), ""]
    found = translator.score_tokens(sources, targets, k=3)
    log_probs, lengths = translator.score(sources, targets)
    for scores, target, total, length in zip(
        found, targets, log_probs, lengths, strict=True
    ):
        ids = [*map(WORDS.index, target.split()), EOS]
        assert scores.ids.tolist() == ids and scores.lengths == length
        assert scores.log_probs.sum() == pytest.approx(total, abs=1e-4)
        assert scores.best_ids.shape == scores.best_log_probs.shape == (length, 3)
        best = scores.best_log_probs
        assert (best[:, 0] >= scores.log_probs - 1e-5).all()
        assert (np.diff(best, axis=1) <= 0).all()
    assert translator.score_tokens([], []) == []
    with pytest.raises(ValueError, match="Received: 1 sources, 2 targets"):
        translator.score_tokens(["a"], ["b", "c"])


def test_samples_of_texts(translator):
    texts = [*random_texts(20, seed=4), ""]
    found = translator.sample(texts, seed=3)
    assert found == translator.sample(texts, seed=3)
    assert found[-1] == Translation("", 0.0, 0.0)
    other = translator.sample(texts, seed=4)
    assert sum(one != two for one, two in zip(found, other, strict=True)) > 15
    for translation in found[:-1]:
        assert 3 <= len(translation.tokens) <= 12 and UNK not in translation.tokens
        total = sum(translation.token_log_probs)
        assert total == pytest.approx(translation.log_prob, abs=1e-4)
    seeds = list(range(21))
    together = translator.sample(texts, seed=seeds)
    assert together[7].tokens == translator.sample([texts[7]], seed=[7])[0].tokens
    greedy = Translator(
        translator.model, Tokenizer(), beam_size=1, xla=False, **OPTIONS, **SHAPES
    )
    cold = [best.text for best in translator.sample(texts, temperature=0)]
    assert cold == greedy.translate(texts)
    assert len({best.text for best in translator.sample(["a b"] * 20, seed=1)}) > 10
    with pytest.raises(ValueError, match=r"`seed` .* \(21\)\. Received: 2"):
        translator.sample(texts, seed=[1, 2])
    with pytest.raises(ValueError, match="`top_p` .* Received: 2.0"):
        translator.sample(texts, top_p=2.0)


def test_no_ngram_twice():
    options = {**OPTIONS, "min_length": 8, **SHAPES, "xla": False}
    texts = random_texts(12)
    repetitive = [
        Translator(RecurrentModel(), Tokenizer(), **options),
        Translator(RecurrentModel(), Tokenizer(), no_repeat_ngram=2, **options),
    ]
    counts = []
    for translator in repetitive:
        rows = [text.split() for text in translator.translate(texts)]
        pairs = [list(zip(row, row[1:], strict=False)) for row in rows]
        counts.append(sum(len(row) - len(set(row)) for row in pairs))
    assert counts[0] > 0 == counts[1]


def test_compiled_search_follows_the_weights():
    model = TrainableModel()
    translator = Translator(model, Tokenizer(), max_length=6, min_length=3, **SHAPES)
    before = translator.translate(["a b c"])
    model.bias.assign(np.eye(9)[8] * 100)
    assert translator.translate(["a b c"]) == ["e e e e e"] != before
    assert translator.num_compilations == 1


def test_greedy_and_lengths_follow_the_options():
    model = RecurrentModel()
    options = {"max_length": 6, "min_length": 5, "block_unknown": True, **SHAPES}
    translator = Translator(model, Tokenizer(), beam_size=1, **options)
    for text in translator.translate(random_texts(8)):
        assert len(text.split()) == 5


@pytest.mark.parametrize("texts", ["a b", b"a b", ["a", None], [b"a"], 3, None])
def test_only_lists_of_texts_are_translated(translator, texts):
    with pytest.raises(TypeError, match="`texts` .* Received: "):
        translator.translate(texts)


def test_wrong_arguments_are_named(translator):
    model, tokenizer = translator.model, translator.tokenizer
    for options in (
        {"beam_size": 0},
        {"length_penalty": "0.6"},
        {"min_length": 64},
        {"max_length": 65},
        {"batch_sizes": ()},
        {"source_lengths": (0, 16)},
        {"no_repeat_ngram": -1},
    ):
        [name] = options
        with pytest.raises(ValueError, match=f"`{name}` .* Received: "):
            Translator(model, tokenizer, **options)
    with pytest.raises(ValueError, match="`n_best` .* Received: 0"):
        translator.translate_nbest(["a"], n_best=0)
    with pytest.raises(ValueError, match="Received: 1 sources, 2 targets"):
        translator.score(["a"], ["b", "c"])
