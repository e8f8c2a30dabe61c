import numpy as np
import pytest
import tensorflow as tf

from keras_attnvariants.data import BatchPlan
from keras_attnvariants.data import TokenizedCorpus
from keras_attnvariants.data import load_corpus
from keras_attnvariants.data import pipeline
from tests.data.toy import spoil
from tests.data.toy import write_pairs


@pytest.fixture
def corpus(toy_folder, cache):
    return load_corpus(toy_folder, "en", "de", cache_dir=cache)


@pytest.fixture
def tokens(corpus, tokenizer):
    return TokenizedCorpus(corpus, tokenizer)


def batches(dataset, count=None):
    dataset = dataset if count is None else dataset.take(count)
    return [
        (x["source_ids"], x["target_ids"], labels, weights)
        for x, labels, weights in dataset.as_numpy_iterator()
    ]


def assert_equal(first, second):
    assert len(first) == len(second)
    for one, other in zip(first, second, strict=True):
        for left, right in zip(one, other, strict=True):
            assert left.dtype == right.dtype
            assert np.array_equal(left, right)


def test_tokens_on_disk_are_those_of_the_tokenizer(tokens, corpus, tokenizer):
    for texts, ids in zip(
        corpus.read_lines("train"), tokens.split("train"), strict=True
    ):
        rows = np.split(ids.ids, ids.offsets[1:-1])
        assert [row.tolist() for row in rows] == tokenizer.encode(texts)
        for _ in range(2):
            assert [row.tolist() for row in ids] == tokenizer.encode(texts)
        assert ids.lengths.tolist() == [len(row) for row in rows]
        assert isinstance(ids.ids, np.memmap)
        assert ids.ids.dtype == np.uint16


@pytest.mark.parametrize("name", ["source.ids", "target.offsets", "manifest.json"])
@pytest.mark.parametrize("damage", ["cut", "flip", "remove"])
def test_damaged_tokens_are_made_again(corpus, tokenizer, capsys, name, damage):
    expected = TokenizedCorpus(corpus, tokenizer).split("test")
    expected = [np.array(side.ids) for side in expected]
    [folder] = (corpus.folder / "tokens").iterdir()
    spoil(folder / name, damage)
    again = TokenizedCorpus(corpus, tokenizer).split("test")
    for side, ids in zip(again, expected, strict=True):
        assert np.array_equal(side.ids, ids)
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("A damaged cache is made anew: ")
    assert name in line and str(folder) in line


def test_batches_are_as_promised(tokens, corpus, tokenizer):
    pairs = dict(zip(*corpus.read_lines("train"), strict=True))
    seen = []
    for source, target, labels, weights in batches(
        tokens.training_dataset(512), tokens.num_batches(512)
    ):
        assert source.dtype == target.dtype == labels.dtype == np.int32
        assert weights.dtype == np.float32
        assert len(source) == len(target)
        assert target.shape == labels.shape == weights.shape
        assert np.array_equal(weights, (labels != 0).astype(np.float32))
        used = weights[:, 0] > 0
        assert not source[~used].any()
        assert not target[~used].any()
        source, target, labels = source[used], target[used], labels[used]
        assert (target[:, 0] == tokenizer.bos_id).all()
        assert not np.isin(source, [2, 3]).any()
        lengths = (labels != 0).sum(axis=1)
        assert (labels[np.arange(len(labels)), lengths - 1] == tokenizer.eos_id).all()
        assert np.array_equal(
            target[:, 1:], np.where(labels == 3, 0, labels)[:, : target.shape[1] - 1]
        )
        texts = tokenizer.decode(source)
        assert [pairs[text] for text in texts] == tokenizer.decode(labels)
        seen += texts
    assert sorted(seen) == sorted(pairs)


def test_length_ratio_is_source_over_target_tokens(tokens, corpus, tokenizer):
    sources, targets = corpus.read_lines("train")
    lengths = [sum(map(len, tokenizer.encode(side))) for side in (sources, targets)]
    assert tokens.length_ratio() == lengths[0] / lengths[1]


def test_element_spec(tokens):
    for dataset in (tokens.training_dataset(512), tokens.validation_dataset(512)):
        inputs, labels, weights = dataset.element_spec
        ids = tf.TensorSpec((None, None), tf.int32)
        assert inputs == {"source_ids": ids, "target_ids": ids}
        assert labels == ids
        assert weights == tf.TensorSpec((None, None), tf.float32)


def test_few_shapes(tokens):
    shapes = {
        (source.shape, labels.shape)
        for source, _, labels, _ in batches(
            tokens.training_dataset(512), 3 * tokens.num_batches(512)
        )
    }
    plan = tokens.plan("train", 512)
    assert shapes == {
        ((s.rows, s.source_length), (s.rows, s.target_length)) for s in plan.shapes
    }
    assert len(shapes) <= 32


def test_the_same_seed_gives_the_same_batches(tokens, corpus, tokenizer, tmp_path):
    again = TokenizedCorpus(corpus, tokenizer, folder=tmp_path / "elsewhere")
    count = 2 * tokens.num_batches(512)
    first = batches(tokens.training_dataset(512, seed=7), count)
    assert_equal(first, batches(again.training_dataset(512, seed=7), count))
    other = batches(tokens.training_dataset(512, seed=8), 1)
    assert first[0][0].shape != other[0][0].shape or (first[0][0] != other[0][0]).any()


@pytest.mark.parametrize("epochs", [0, 1, 2])
def test_resuming_equals_skipping(tokens, epochs):
    step = epochs * tokens.num_batches(512) + 3
    skipped = batches(tokens.training_dataset(512).skip(step), 5)
    assert_equal(skipped, batches(tokens.training_dataset(512, start_step=step), 5))


def test_workers_share_the_batches(tokens):
    whole = batches(tokens.training_dataset(512), 12)
    for worker in range(3):
        part = tokens.training_dataset(512).shard(3, worker)
        assert_equal(batches(part, 4), whole[worker::3])


def test_the_number_of_shapes_is_an_option(corpus, tokenizer):
    tokens = TokenizedCorpus(corpus, tokenizer, max_shapes=3)
    assert len(tokens.plan(batch_tokens=512).shapes) == 3


def test_each_shape_has_enough_batches_on_request(tokens, corpus, tokenizer):
    usual = len(tokens.plan(batch_tokens=512).shapes)

    def plan(batches_per_shape):
        made = TokenizedCorpus(corpus, tokenizer, batches_per_shape=batches_per_shape)
        return made.plan(batch_tokens=512)

    assert len(plan(1).shapes) <= usual
    for wanted in (2, 3):
        found = plan(wanted)
        assert 4 < len(found.shapes) < usual
        assert found.num_batches >= wanted * len(found.shapes)
    assert len(plan(10**6).shapes) == 4
    with pytest.raises(ValueError, match="`batches_per_shape` must be"):
        plan(-1)


def test_training_never_ends(tokens):
    step = 10**9
    endless = tokens.training_dataset(512).cardinality()
    assert endless == tf.data.INFINITE_CARDINALITY
    assert len(batches(tokens.training_dataset(512, start_step=step), 2)) == 2


def test_a_process_does_not_wait_for_a_tuner_when_it_ends(tokens):
    for dataset in (tokens.training_dataset(512), tokens.validation_dataset(512)):
        assert dataset.options().autotune.enabled is False


def test_validation_is_finite_ordered_and_of_known_shapes(tokens, corpus, tokenizer):
    first = batches(tokens.validation_dataset(512))
    assert_equal(first, batches(tokens.validation_dataset(512)))
    texts = [t for b in first for t in tokenizer.decode(b[0][b[3][:, 0] > 0])]
    assert sorted(texts) == sorted(corpus.read_lines("validation")[0])
    known = {(s.rows, s.source_length) for s in tokens.plan("train", 512).shapes}
    assert {b[0].shape for b in first} <= known


def test_an_epoch_is_planned_once_for_training_and_validation(
    corpus, tokenizer, monkeypatch
):
    made = []

    def plan(*lengths, seed, **options):
        made.append(seed)
        return BatchPlan(*lengths, seed=seed, **options)

    monkeypatch.setattr(pipeline, "BatchPlan", plan)
    tokens = TokenizedCorpus(corpus, tokenizer)
    tokens.validation_dataset(512, seed=7)
    tokens.training_dataset(512, seed=7)
    assert made == [7, None]  # the second is the plan of the validation split


def test_validation_without_a_training_split(tmp_path, cache, tokenizer):
    write_pairs(tmp_path / "only", "test", [("a dog", "ä düg"), ("the cat", "thö cät")])
    corpus = load_corpus(tmp_path / "only", "en", "de", cache_dir=cache)
    tokens = TokenizedCorpus(corpus, tokenizer)
    dataset = tokens.validation_dataset(512, split="test")
    assert sum(int(b[3][:, 0].sum()) for b in batches(dataset)) == 2


def test_tokens_are_written_once_and_follow_tokenizer(tokens, corpus, toy_texts):
    tokens.split("train")
    stamps = {f: f.stat().st_mtime_ns for f in tokens.folder.rglob("*.ids")}
    TokenizedCorpus(corpus, tokens.tokenizer).split("train")
    assert stamps == {f: f.stat().st_mtime_ns for f in tokens.folder.rglob("*.ids")}
    other = type(tokens.tokenizer).train(toy_texts, 80)
    again = TokenizedCorpus(corpus, other)
    assert again.split("train")[0].ids.max() < 80
    assert len(list(tokens.folder.iterdir())) == 2


def test_a_failure_leaves_nothing_behind(tokens, monkeypatch):
    def fail(path):
        raise RuntimeError("disk full")

    monkeypatch.setattr(tokens.tokenizer, "encode_file", fail, raising=True)
    with pytest.raises(RuntimeError, match="disk full"):
        tokens.split("train")
    assert not list(tokens.folder.glob("*"))
    monkeypatch.undo()
    assert len(tokens.split("train")[0].lengths) == 300


def test_pairs_without_tokens_or_too_long_are_counted(tmp_path, cache, tokenizer):
    folder = tmp_path / "odd"
    write_pairs(folder, "train", [("a dog", "ä düg"), ("the cat", "thö cät " * 90)])
    write_pairs(folder, "valid", [("a dog", "ä düg"), ("", "thö"), ("the", "")])
    corpus = load_corpus(folder, "en", "de", cache_dir=cache)
    tokens = TokenizedCorpus(corpus, tokenizer, max_length=64)
    assert tokens.plan("train").num_skipped == 1
    plan = tokens.plan("validation", seed=None)
    assert (plan.num_pairs, plan.num_skipped) == (1, 2)


def test_empty_token_files(tmp_path, cache, tokenizer):
    write_pairs(tmp_path / "e", "test", [("", "x"), ("", "y")])
    corpus = load_corpus(tmp_path / "e", "en", "de", cache_dir=cache)
    source, target = TokenizedCorpus(corpus, tokenizer).split("test")
    assert source.lengths.tolist() == [0, 0]
    assert (target.lengths > 0).all()


def test_large_budgets_and_corpora_stream(tokens, monkeypatch):
    # Blocks much smaller than the corpus must give the same files.
    whole = tokens.split("train")[0].ids.tobytes()
    monkeypatch.setattr("keras_attnvariants.data.tokenizer._LINES_PER_BLOCK", 7)
    blocks = TokenizedCorpus(tokens.corpus, tokens.tokenizer, tokens.folder / "other")
    assert blocks.split("train")[0].ids.tobytes() == whole


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"start_step": -1}, "`start_step`"),
        ({"split": "tests"}, "no such split"),
    ],
)
def test_bad_arguments(tokens, options, message):
    with pytest.raises(ValueError, match=rf"{message}.*Received: "):
        tokens.training_dataset(512, **options)
