"""The exported signatures, run in a process where the package cannot be imported."""

import numpy as np
import pytest
from keras import ops

from keras_attnvariants.decoding import IMPOSSIBLE
from keras_attnvariants.decoding import score
from keras_attnvariants.decoding import score_tokens
from keras_attnvariants.serving import Status
from keras_attnvariants.serving import export
from keras_attnvariants.serving import verify
from tests.serving.conftest import OnDemand
from tests.serving.mixtures import ALL_VARIANTS
from tests.serving.mixtures import members_of
from tests.serving.mixtures import mixes
from tests.serving.mixtures import mixtures_of
from tests.serving.tools import FIRST_IS_FAST
from tests.serving.tools import KIN
from tests.serving.tools import LIMITS
from tests.serving.tools import RUBBISH
from tests.serving.tools import SENTENCES
from tests.serving.tools import VARIANTS
from tests.serving.tools import OtherProcess
from tests.serving.tools import ServingError
from tests.serving.tools import as_batch
from tests.serving.tools import sharp_model
from tests.serving.tools import translate_here

# Variants that are served as ids only: in mixtures of four layers, or by themselves.
OF_TEXTS = {member for variant in VARIANTS for member in members_of(variant)}
OTHERS = [variant for variant in ALL_VARIANTS if variant not in OF_TEXTS]
ALONE = [v for v in OTHERS if not mixes(v)]
MIXTURES = mixtures_of([v for v in OTHERS if mixes(v)], layers=4)
# Extra tokens in translations of mixtures, beyond the lengths of the sources: more
# layers amplify rounding, and feedback amplifies it at each position.
SHORT = {"extra_length": 12}


def serve(server, path, texts, signature="serving_default"):
    """Results of texts in batches of the largest size, one after another."""
    size = LIMITS["max_batch"]
    parts = [
        server.call(path, signature, text=texts[i : i + size])
        for i in range(0, len(texts), size)
    ]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


@pytest.fixture(scope="module")
def several(models, tokenizer, texts):
    """Texts, results of a search for three translations, and the best, by variant."""
    given = [*texts[:6], ""]
    return OnDemand(
        lambda variant: (
            given,
            *translate_here(models[variant], tokenizer, given, n_best=3),
        )
    )


@pytest.mark.parametrize("variant", FIRST_IS_FAST)
def test_translations_equal_those_of_the_package(
    variant, found, exported, server, texts
):
    hypotheses, expected = found[variant]
    assert len(set(expected)) > SENTENCES / 2  # the models distinguish texts
    served = serve(server, exported[variant], texts[:SENTENCES])
    assert served["translations"].tolist() == expected
    # Different padding is rounded differently, which sharpened weights amplify.
    scores = ops.convert_to_numpy(hypotheses.scores)[:, 0]
    np.testing.assert_allclose(served["scores"], scores, atol=1e-4, rtol=1e-4)
    assert not served["truncated"].any()
    assert not served["status"].any()


@pytest.mark.parametrize("variant", FIRST_IS_FAST)
def test_ids_equal_those_of_the_package_whatever_the_padding(
    variant, found, tokenizer, exported, server, texts
):
    count = LIMITS["max_batch"]
    rows = tokenizer.encode(texts[:count])
    ids, scores, _, expected_lengths, *_ = (
        None if part is None else ops.convert_to_numpy(part)[:count, 0]
        for part in found[variant][0]
    )
    lengths = np.array([len(row) for row in rows], "int32")
    clean = as_batch(rows, width=29)
    is_padding = np.arange(29) >= lengths[:, None]
    rubbish = np.random.default_rng(0).integers(-(2**31), 2**31 - 1, clean.shape)
    first = np.broadcast_to(clean[:1, :1], clean.shape)  # as TensorFlow Serving pads
    for padding in (0, rubbish, first):
        source_ids = np.where(is_padding, padding, clean).astype("int32")
        served = server.call(
            exported[variant], "translate_ids", source_ids=source_ids, lengths=lengths
        )
        width = served["ids"].shape[1]
        np.testing.assert_array_equal(served["ids"], ids[:, :width])
        assert not np.any(ids[:, width:])
        np.testing.assert_array_equal(served["lengths"], expected_lengths)
        np.testing.assert_allclose(served["scores"], scores, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("variant", [*MIXTURES, *ALONE])
def test_ids_of_the_other_variants_equal_those_of_the_package(
    variant, tokenizer, texts, server, tmp_path
):
    try:
        check_ids(variant, tokenizer, texts, server, tmp_path / "all")
    except AssertionError:
        # Each variant of a mixture by itself shows which one is wrong.
        for member in members_of(variant):
            check_ids(member, tokenizer, texts, server, tmp_path / member)
        raise


def check_ids(variant, tokenizer, texts, server, folder):
    """Asserts that the export of a variant finds the ids and scores of its model."""
    short = {"search_settings": SHORT} if variant in MIXTURES else {}
    model = sharp_model(variant, **short)
    hypotheses, expected = translate_here(model, tokenizer, texts[:SENTENCES])
    assert len(set(expected)) > SENTENCES / 2  # the models distinguish texts
    count = LIMITS["max_batch"]
    rows = tokenizer.encode(texts[:count])
    path = export(model, None, folder, **LIMITS)
    verify(path)
    served = server.call(
        path,
        "translate_ids",
        source_ids=as_batch(rows),
        lengths=np.array([len(row) for row in rows], "int32"),
    )
    width = served["ids"].shape[1]
    ids, scores = (
        ops.convert_to_numpy(part)[:count, 0]
        for part in (hypotheses.ids, hypotheses.scores)
    )
    np.testing.assert_array_equal(served["ids"], ids[:, :width])
    assert not np.any(ids[:, width:])
    np.testing.assert_allclose(served["scores"], scores, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("size", [0, 1, 2, 7, 33])
def test_a_translation_does_not_depend_on_the_batch(
    size, found, exported, server, texts
):
    served = server.call(exported["hc-sa"], "serving_default", text=texts[:size])
    assert served["translations"].tolist() == found["hc-sa"][1][:size]


@pytest.mark.parametrize("signature", ["serving_default", "nbest", "align"])
def test_no_text_and_empty_texts_are_fine(signature, exported, server):
    nothing = server.call(exported["hc-sa"], signature, text=[])
    assert {len(value) for value in nothing.values()} == {0}
    empty = server.call(exported["hc-sa"], signature, text=["", " ", ""])
    assert set(empty["translations"].ravel()) == {""}
    best = empty["scores"] if signature != "nbest" else empty["scores"][:, 0]
    assert best.tolist() == [0, 0, 0]


@pytest.mark.parametrize("variant", FIRST_IS_FAST)
def test_nbest_is_sorted_and_alone(variant, several, exported, server):
    texts, found, best = several[variant]
    served = serve(server, exported[variant], texts, "nbest")
    assert served.keys() == {"translations", "scores", "truncated", "status"}
    assert served["translations"].shape == (7, 3)
    assert served["translations"][:, 0].tolist() == best
    np.testing.assert_allclose(served["scores"], found.scores, atol=1e-4, rtol=1e-4)
    assert np.all(np.diff(served["scores"], axis=1) <= 0)


@pytest.mark.parametrize(
    "variant",
    # For the kin, the alignments are those of the last layer; `sh-x` has one head.
    [*FIRST_IS_FAST, pytest.param("sh-x", marks=pytest.mark.slow)],
)
def test_the_best_translation_is_aligned_and_scored_piece_by_piece(
    variant, several, models, tokenizer, exported, server
):
    texts, found, best = several[variant]
    served = serve(server, exported[variant], texts, "align")
    assert served["translations"].tolist() == best
    lengths = np.asarray(found.lengths)[:, 0]
    steps, width = served["alignments"].shape[1:]
    assert steps == lengths.max()
    np.testing.assert_allclose(
        served["alignments"], found.alignments[:, 0, :steps, :width], atol=1e-4
    )
    rows = tokenizer.encode(texts)
    for row, pieces in zip(rows, served["source_pieces"], strict=True):
        assert [p for p in pieces if p] == [tokenizer.pieces[i] for i in row]
    ids = ops.convert_to_numpy(found.ids)[:, 0]
    for row, pieces, length in zip(ids, served["pieces"], lengths, strict=True):
        expected = [tokenizer.pieces[i] for i in row[:length]]
        assert pieces.tolist() == expected + [""] * (steps - length)
        assert pieces[length - 1] == "</s>"
    log_probs = served["token_log_probs"]
    assert np.all(log_probs <= 0)
    assert not log_probs[served["pieces"] == ""].any()
    expected = np.asarray(found.log_probs)[:, 0]
    np.testing.assert_allclose(log_probs.sum(axis=1), expected, atol=1e-3, rtol=1e-4)
    assert not log_probs[-1].any()  # an empty text is translated with certainty
    # Another pass over the translation finds the weights that the search used.
    targets = [row[: length - 1] for row, length in zip(ids, lengths, strict=True)]
    scored = score_tokens(models[variant], as_batch(rows[:-1]), as_batch(targets[:-1]))
    np.testing.assert_allclose(log_probs[:-1], scored.log_probs, atol=1e-3)


def test_scores_equal_those_of_the_package(models, tokenizer, exported, server, texts):
    sources, targets = texts[:7], texts[7:13] + [""]
    expected, lengths = score(
        models["hc-sa"],
        as_batch(tokenizer.encode(sources)),
        as_batch(tokenizer.encode(targets)),
    )
    served = server.call(exported["hc-sa"], "score", source=sources, target=targets)
    np.testing.assert_allclose(served["log_probs"], expected, rtol=1e-4)
    np.testing.assert_array_equal(served["lengths"], lengths)
    log_probs = served["token_log_probs"]
    np.testing.assert_allclose(log_probs.sum(axis=1), expected, rtol=1e-4)
    expected = [*tokenizer.encode(targets[:1])[0], tokenizer.eos_id]
    pieces = [piece for piece in served["pieces"][0] if piece]
    assert pieces == [tokenizer.pieces[i] for i in expected]
    assert not log_probs[served["pieces"] == ""].any()


@pytest.mark.parametrize("signature", ["serving_default", "nbest"])
def test_long_texts_are_cut_to_whole_characters_and_flagged(
    signature, exported, server
):
    limit = LIMITS["max_characters"]
    # There are four bytes per character; all of them together are one unknown token.
    fits, long = "𐍈" * limit, "𐍈" * (limit + 1)
    served = server.call(exported["hc-sa"], signature, text=[fits, long, "a", long * 9])
    assert served["truncated"].tolist() == [False, True, False, True]
    translations = served["translations"].reshape(4, -1)
    assert np.array_equal(translations[1], translations[0])
    assert np.array_equal(translations[3], translations[0])


@pytest.mark.slow
def test_long_token_sequences_are_cut_and_flagged(tokenizer, exported, server, texts):
    limit, path = LIMITS["max_tokens"], exported[KIN]
    long = next(
        t
        for t in map(" ".join, zip(texts, texts[1:], strict=False))
        if limit < len(tokenizer.encode([t])[0]) and len(t) < 120
    )
    served = server.call(path, "serving_default", text=[long, texts[0]])
    assert served["truncated"].tolist() == [True, False]
    ids = np.array(tokenizer.encode([long]), "int32")
    by_ids = server.call(
        path, "translate_ids", source_ids=ids, lengths=np.array([ids.size], "int32")
    )
    assert by_ids["truncated"].tolist() == [True]
    cut = server.call(
        path, "translate_ids", source_ids=ids, lengths=np.array([limit], "int32")
    )
    assert cut["truncated"].tolist() == [False]
    assert np.array_equal(by_ids["ids"], cut["ids"])
    assert tokenizer.decode(cut["ids"]) == served["translations"][:1].tolist()
    scored = server.call(
        path, "score", source=[long, "a", "a"], target=["a", long, "a"]
    )
    assert scored["truncated"].tolist() == [True, True, False]


def test_too_many_sentences_are_refused_by_name_and_number(exported, server):
    limit = LIMITS["max_batch"]
    many = ["a"] * (limit + 1)
    ids = {
        "source_ids": np.ones((limit + 1, 2), "int32"),
        "lengths": np.ones(limit + 1, "int32"),
    }
    for signature, inputs in [
        ("serving_default", {"text": many}),
        ("nbest", {"text": many}),
        ("align", {"text": many}),
        ("score", {"source": many, "target": many}),
        ("translate_ids", ids),
    ]:
        name = next(iter(inputs))
        message = rf"InvalidArgument[\s\S]*`{name}` may hold at most {limit} sentences"
        with pytest.raises(ServingError, match=message) as error:
            server.call(exported["hc-sa"], signature, **inputs)
        assert f"[{limit + 1}]" in str(error.value)


@pytest.mark.parametrize(
    ("signature", "inputs", "name"),
    [
        ("serving_default", {}, "text"),
        ("score", {"source": ["a"]}, "target"),
        ("score", {"source": ["a"], "target": ["a", "b"]}, "target"),
        ("translate_ids", {"source_ids": np.ones((1, 2), "int32")}, "lengths"),
        (
            "translate_ids",
            {"source_ids": np.ones((1, 2), "int32"), "lengths": np.ones(2, "int32")},
            "lengths",
        ),
        ("serving_default", {"text": np.array("secret")}, "text"),
        ("nbest", {"text": np.full((1, 20000), "secret")}, "text"),
        ("align", {"text": np.full((1, 2), "secret")}, "text"),
        ("score", {"source": ["a"], "target": np.full((1, 2), "secret")}, "target"),
        (
            "translate_ids",
            {"source_ids": np.full(2, 4321, "int32"), "lengths": np.ones(2, "int32")},
            "source_ids",
        ),
        (
            "translate_ids",
            {
                "source_ids": np.full((1, 2), 4321, "int32"),
                "lengths": np.full((1, 1), 4321, "int32"),
            },
            "lengths",
        ),
    ],
)
def test_wrong_inputs_are_refused_by_name(signature, inputs, name, exported, server):
    with pytest.raises(ServingError, match=rf"\b{name}\b") as error:
        server.call(exported["hc-sa"], signature, **inputs)
    assert "secret" not in str(error.value)
    assert "4321" not in str(error.value)


def test_a_bad_row_costs_its_neighbours_nothing(exported, server):
    good = as_batch([[4, 5, 6], [7, 8, 9]], width=4)
    bad = np.array([[4, 99999, 5, 6], [4, 0, 5, 6], [4, 5, 6, 7], [4, 5, 6, 7]])
    both = {
        "source_ids": np.concatenate([good[:1], bad, good[1:]]).astype("int32"),
        "lengths": np.array([3, 4, 3, 5, -1, 3], "int32"),
    }
    served = server.call(exported["hc-sa"], "translate_ids", **both)
    assert served["status"].tolist() == [
        Status.OK,
        Status.UNKNOWN_ID,
        Status.PADDING_INSIDE,
        Status.WRONG_LENGTH,
        Status.WRONG_LENGTH,
        Status.OK,
    ]
    assert not served["ids"][1:5].any()
    assert not served["lengths"][1:5].any()
    assert not served["truncated"].any()
    assert served["scores"][1:5].tolist() == [np.float32(IMPOSSIBLE)] * 4
    alone = server.call(
        exported["hc-sa"],
        "translate_ids",
        source_ids=good.astype("int32"),
        lengths=np.array([3, 3], "int32"),
    )
    np.testing.assert_array_equal(served["ids"][[0, 5]], alone["ids"])
    assert alone["status"].tolist() == [Status.OK] * 2


@pytest.mark.parametrize(
    ("signature", "inputs", "expected"),
    [
        ("serving_default", {"text": np.array([1, 2])}, "string"),
        (
            "translate_ids",
            {"source_ids": np.ones((1, 2)), "lengths": np.array([2], "int32")},
            "int32",
        ),
    ],
)
def test_wrong_types_are_refused(signature, inputs, expected, exported, server):
    with pytest.raises(ServingError, match=f"expected to be a {expected} tensor"):
        server.call(exported["hc-sa"], signature, **inputs)


def test_rubbish_is_translated_to_valid_text(exported, server):
    rng = np.random.default_rng(6)
    rubbish = [
        b"".join(RUBBISH[i] for i in rng.integers(0, len(RUBBISH), rng.integers(1, 30)))
        if number % 3
        else rng.bytes(int(rng.integers(1, 200)))
        for number in range(296)
    ]
    rubbish += [b"\0" * 65536, b"\xf0\x9f\x98" * 21845, rng.bytes(65536), b"a" * 65536]
    # That outputs are valid UTF-8 is checked where they are unpacked.
    served = serve(server, exported["hc-sa"], rubbish)
    assert len(served["translations"]) == 300
    assert served["truncated"][-4:].tolist() == [True] * 4


@pytest.mark.slow
def test_ids_alone_need_no_tensorflow_text(found, tokenizer, texts, exported_for_ids):
    rows = tokenizer.encode(texts[:3])
    process = OtherProcess("keras_attnvariants", "tensorflow_text")
    try:
        served = process.call(
            exported_for_ids,
            "serving_default",
            source_ids=as_batch(rows),
            lengths=np.array([len(row) for row in rows], "int32"),
        )
    finally:
        process.close()
    width = served["ids"].shape[1]
    expected = found["hc-sa"][0].ids[:3, 0, :width]
    np.testing.assert_array_equal(served["ids"], expected)
