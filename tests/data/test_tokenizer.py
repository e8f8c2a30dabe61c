import copy
import io
import pickle

import pytest
import sentencepiece
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from keras_attnvariants.data import Tokenizer
from tests.data.toy import toy_pairs

ODD_LINES = [
    "",
    " ",
    "  two  spaces  ",
    "tab\tand\rcarriage return",
    "ﬁne ﬂow ① Ⅷ ㌔ ﾊﾝｶｸ ｆｕｌｌ",
    "e\u0301 and é, A\u030a and Å",
    "👩‍👩‍👧‍👦 🇩🇪 🏴󠁧󠁢󠁥󠁮󠁧󠁿",
    "שלום مرحبا \u202eright to left\u202c",
    "zero\u200bwidth\u200djoiner \ufeffmark",
    "日本語の文です。",
    "control \x01\x02\x7f and \u0085 and \u2028",
    "▁ the piece mark itself ▁▁",
    "<s> </s> <pad> <unk>",
    "\ufffd\uffff\U0010ffff",
]


def test_special_ids_are_fixed(tokenizer):
    ids = (tokenizer.pad_id, tokenizer.unk_id, tokenizer.bos_id, tokenizer.eos_id)
    assert ids == (0, 1, 2, 3)
    processor = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.model_bytes)
    assert processor.pad_id() == 0
    assert processor.unk_id() == 1
    assert processor.bos_id() == 2
    assert processor.eos_id() == 3


@pytest.mark.parametrize("text", ODD_LINES)
def test_pieces_are_those_of_the_ids(tokenizer, text):
    [ids], [pieces] = tokenizer.encode([text]), tokenizer.split([text])
    known = [tokenizer.pieces[i] if i != tokenizer.unk_id else None for i in ids]
    assert len(pieces) == len(ids)
    assert all(mine in (None, piece) for mine, piece in zip(known, pieces, strict=True))
    assert "<unk>" not in pieces or "<unk>" in text


@pytest.mark.parametrize("model_type", ["unigram", "bpe"])
def test_training_is_deterministic_and_exact_in_size(toy_texts, model_type):
    first = Tokenizer.train(toy_texts, 90, model_type=model_type)
    second = Tokenizer.train(toy_texts, 90, model_type=model_type)
    assert first.model_bytes == second.model_bytes
    assert first.vocabulary_size == 90 == len(first.pieces)


def test_files_and_texts_train_the_same_model(toy_texts, tmp_path):
    path = tmp_path / "all.txt"
    path.write_text("".join(text + "\n" for text in toy_texts), encoding="utf-8")
    from_file = Tokenizer.train([path], 90)
    assert from_file.model_bytes == Tokenizer.train(toy_texts, 90).model_bytes


def test_training_is_quiet(toy_texts, capfd):
    Tokenizer.train(toy_texts, 90)
    captured = capfd.readouterr()
    assert captured.out == captured.err == ""


def test_a_large_corpus_is_sampled_evenly(toy_texts):
    every_third = Tokenizer.train(toy_texts, 84, max_sentences=200)
    assert every_third.model_bytes == Tokenizer.train(toy_texts[::3], 84).model_bytes


def test_round_trip(tokenizer, toy_texts):
    assert tokenizer.decode(tokenizer.encode(toy_texts)) == toy_texts


def test_encode_adds_no_special_ids(tokenizer, toy_texts):
    ids = {i for row in tokenizer.encode(toy_texts) for i in row}
    assert not ids & {0, 1, 2, 3}


def test_decode_drops_special_ids(tokenizer):
    [row] = tokenizer.encode(["the old man"])
    assert tokenizer.decode([[2, *row, 3, 0, 0], [], [0, 2, 3]]) == [
        "the old man",
        "",
        "",
    ]


def test_decode_takes_arrays(tokenizer):
    [row] = tokenizer.encode(["the old man"])
    assert tokenizer.decode(tf.constant([row]).numpy()) == ["the old man"]


@pytest.mark.parametrize("number", [-1, 96])
def test_decode_refuses_ids_out_of_range(tokenizer, number):
    with pytest.raises(ValueError, match=r"`ids` must be in \[0, 96\).*Received"):
        tokenizer.decode([[number]])


def test_lone_surrogates_are_replaced(tokenizer):
    assert tokenizer.encode(["a \ud800 b"]) == tokenizer.encode(["a \ufffd b"])


def test_save_and_load(tokenizer, tmp_path):
    path = tmp_path / "new folder" / "tokenizer.model"
    tokenizer.save(path)
    assert Tokenizer.load(path).model_bytes == tokenizer.model_bytes
    assert Tokenizer.load(tokenizer.model_bytes).sha256 == tokenizer.sha256
    assert [file.name for file in path.parent.iterdir()] == ["tokenizer.model"]


def test_copies_and_pickles(tokenizer):
    for other in (copy.deepcopy(tokenizer), pickle.loads(pickle.dumps(tokenizer))):  # noqa: S301
        assert other.model_bytes == tokenizer.model_bytes


def test_tf_tokenizer_gives_the_same_ids(tokenizer):
    lines = ODD_LINES + [text for pair in toy_pairs(500) for text in pair]
    ids = tokenizer.tf_tokenizer().tokenize(lines[:1000])
    assert ids.dtype == tf.int32
    assert ids.to_list() == tokenizer.encode(lines[:1000])


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=5))
def test_tf_tokenizer_agrees_on_any_text(tokenizer, texts):
    # A NUL ends a string in neither library, but corpora never hold one.
    texts = [text.replace("\0", "") for text in texts]
    ids = tokenizer.tf_tokenizer().tokenize(tf.constant(texts, tf.string))
    assert ids.to_list() == tokenizer.encode(texts)


def test_other_special_ids_are_refused(toy_texts):
    model = sentencepiece_model(toy_texts, vocab_size=90)
    with pytest.raises(ValueError, match=r"pad 0, unk 1.*Received: .*\(-1, 0, 1, 2\)"):
        Tokenizer(model)


FOREIGN_IDS = [
    {},
    {"pad_id": 3, "unk_id": 0, "bos_id": 1, "eos_id": 2},
    {"pad_id": -1, "unk_id": 1, "bos_id": -1, "eos_id": 0, "eos_piece": "[end]"},
]


def sentencepiece_model(texts, **options):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts), model_writer=model, minloglevel=2, **options
    )
    return model.getvalue()


@pytest.mark.parametrize("ids", FOREIGN_IDS)
@pytest.mark.parametrize("model_type", ["unigram", "bpe"])
def test_models_of_other_toolkits_are_adopted(toy_texts, ids, model_type, tmp_path):
    content = sentencepiece_model(
        toy_texts, vocab_size=90, model_type=model_type, **ids
    )
    (tmp_path / "spm.model").write_bytes(content)
    tokenizer = Tokenizer.adopt(tmp_path / "spm.model")
    original = sentencepiece.SentencePieceProcessor(model_proto=content)
    texts = [*toy_texts, *ODD_LINES]
    assert tokenizer.split(texts) == original.encode(texts, out_type=str)
    assert tokenizer.decode(tokenizer.encode(toy_texts)) == toy_texts
    assert tokenizer.pieces[:4] == ["<pad>", "<unk>", "<s>", "</s>"]
    read = original.pad_id, original.unk_id, original.bos_id, original.eos_id
    special = {number() for number in read}
    ordinary = [n for n in range(original.get_piece_size()) if n not in special]
    assert tokenizer.pieces[4:] == [original.id_to_piece(n) for n in ordinary]


def test_an_adopted_model_stays_as_it_is(tokenizer, toy_texts):
    again = Tokenizer.adopt(tokenizer.model_bytes)
    assert again.pieces == tokenizer.pieces
    assert again.encode(toy_texts) == tokenizer.encode(toy_texts)


def test_an_ordinary_piece_is_not_taken_for_a_special_one(toy_texts):
    content = sentencepiece_model(
        toy_texts, vocab_size=90, user_defined_symbols=["<pad>"]
    )
    with pytest.raises(ValueError, match="must have <pad> as a special piece"):
        Tokenizer.adopt(content)


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_models_that_are_cut_short_are_not_adopted(tokenizer, share):
    content = tokenizer.model_bytes
    with pytest.raises(ValueError, match="a whole one"):
        Tokenizer.adopt(content[: int(share * len(content))])


@pytest.mark.parametrize("make", [Tokenizer, Tokenizer.adopt])
@pytest.mark.parametrize("content", [b"", b"no model", bytes(1000)])
def test_rubbish_is_refused(make, content):
    with pytest.raises(ValueError, match="Received"):
        make(content)


def test_truncated_models_are_refused(tokenizer):
    for length in range(1, len(tokenizer.model_bytes) - 1, 997):
        with pytest.raises(ValueError, match="Received"):
            Tokenizer(tokenizer.model_bytes[:length])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([], 100), ValueError, "no sentence"),
        ((["", " "], 100), ValueError, "no sentence"),
        (("a text", 100), TypeError, "must be a list"),
        ((["a text"], 4), ValueError, "`vocabulary_size`"),
        ((["a text"], 4000), ValueError, "too small: set `vocabulary_size`"),
        ((["a text"], 100, "word"), ValueError, "`model_type`"),
        ((["a text"], 100, "bpe", 1.5), ValueError, "character_coverage"),
    ],
)
def test_bad_training_arguments(arguments, error, message):
    with pytest.raises(error, match=rf"(?s){message}.*Received: "):
        Tokenizer.train(*arguments)


def test_missing_files(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"Received: .*absent\.txt"):
        Tokenizer.train([tmp_path / "absent.txt"], 100)
    with pytest.raises(FileNotFoundError, match=r"Received: .*absent\.model"):
        Tokenizer.load(tmp_path / "absent.model")


def test_texts_must_be_a_list_and_models_bytes(tokenizer):
    with pytest.raises(TypeError, match="`texts` must be a list.*Received"):
        tokenizer.encode("a text")
    with pytest.raises(TypeError, match="`model_bytes`.*Received: str"):
        Tokenizer("a path")
