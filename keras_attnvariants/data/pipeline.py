"""Token files on disk, and `tf.data` datasets of fixed-shape batches from them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from keras_attnvariants.data.alignments import TokenLinks
from keras_attnvariants.data.alignments import write_token_links
from keras_attnvariants.data.batching import BatchPlan
from keras_attnvariants.data.batching import BatchShape
from keras_attnvariants.data.bucketing import blocks
from keras_attnvariants.data.corpora import Corpus
from keras_attnvariants.data.splits import ParallelFiles
from keras_attnvariants.data.text_files import fingerprint
from keras_attnvariants.data.tokenizer import Tokenizer
from keras_attnvariants.utils.caches import cached_folder
from keras_attnvariants.utils.checks import check_integer
from keras_attnvariants.utils.folders import FolderWriter
from keras_attnvariants.utils.typing import Tensor

LINES_PER_BLOCK = 4096


class TokenizedText:
    """The token ids of a text file, memory-mapped.

    Attributes:
        ids: int32 `[tokens]`, the ids of all lines one after another.
        offsets: int64 `[lines + 1]`, where each line begins.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.offsets = np.memmap(path.with_suffix(".offsets"), np.int64, mode="r")
        ids = path.with_suffix(".ids")
        # An empty file cannot be memory-mapped.
        self.ids: np.ndarray = (
            np.memmap(ids, np.int32, mode="r")
            if ids.stat().st_size
            else np.zeros(0, np.int32)
        )

    @property
    def lengths(self) -> np.ndarray:
        """Tokens of each line, `[lines]`, with 16 bits unless a line has too many."""
        lengths = np.empty(len(self.offsets) - 1, np.uint16)
        # Read, because what is mapped counts as memory of the process.
        with open(self._path.with_suffix(".offsets"), "rb") as file:
            end = np.fromfile(file, np.int64, 1)
            for block in blocks(len(lengths)):
                ends = np.fromfile(file, np.int64, block.stop - block.start)
                found = np.diff(ends, prepend=end)
                # One more for EOS.
                if found.max() >= np.iinfo(lengths.dtype).max:
                    lengths = lengths.astype(np.int32)
                lengths[block] = found
                end = ends[-1:]
        return lengths

    def __iter__(self) -> Iterator[np.ndarray]:
        """The ids of each line, int32 `[tokens of the line]`."""
        ids = np.asarray(self.ids)
        for start, end in pairwise(np.asarray(self.offsets)):
            yield ids[start:end]

    def padded(self, lines: np.ndarray, rows: int, length: int) -> np.ndarray:
        """Returns int32 `[rows, length]`: the given lines, padded with 0."""
        starts = self.offsets[lines]
        lengths = self.offsets[lines + 1] - starts
        columns = np.arange(length)
        used = np.zeros((rows, length), bool)
        used[: len(lines)] = columns < lengths[:, None]
        batch = np.zeros((rows, length), np.int32)
        batch[used] = self.ids[(starts[:, None] + columns)[used[: len(lines)]]]
        return batch


class TokenizedCorpus:
    """A corpus as token ids on disk, and the datasets that training reads.

    Each split is tokenised once, when it is first asked for, by
    `tensorflow_text` inside `tf.data`. Neither the text nor the ids have to fit in
    memory.

    Args:
        corpus: A `Corpus` from `load_corpus`.
        tokenizer: The `Tokenizer` of both languages.
        folder: Where the token files go; default beside the cleaned corpus. They
            are reused if corpus and tokenizer are the same.
        max_length: Longest source or target in positions (a target has its EOS).
            Longer pairs, and pairs with an empty side, are in no batch, which
            `plan(…).num_skipped` counts.
        max_shapes: Most batch shapes. XLA compiles one program for each; fewer
            shapes compile sooner and pad more.

    Example:

    ```python
    corpus = kav.data.load_corpus("folder", "en", "de")
    tokenizer = kav.data.Tokenizer.train(corpus.splits["train"], 8000)
    tokens = kav.data.TokenizedCorpus(corpus, tokenizer)
    model.fit(
        tokens.training_dataset(batch_tokens=4096, seed=1),
        shuffle=False,
        steps_per_epoch=tokens.num_batches(batch_tokens=4096),
        validation_data=tokens.validation_dataset(batch_tokens=4096),
    )
    ```
    """

    def __init__(
        self,
        corpus: Corpus,
        tokenizer: Tokenizer,
        folder: os.PathLike[str] | str | None = None,
        max_length: int = 256,
        max_shapes: int = 32,
    ) -> None:
        self.corpus = corpus
        self.tokenizer = tokenizer
        self.folder = Path(folder) if folder else corpus.folder / "tokens"
        self.max_length = max_length
        self.max_shapes = max_shapes
        self._splits: dict[str, tuple[TokenizedText, TokenizedText]] = {}
        self._plans: dict[tuple[Any, ...], BatchPlan] = {}

    def split(self, name: str) -> tuple[TokenizedText, TokenizedText]:
        """Returns source and target ids of a split, tokenised when first asked for.

        Files on disk that are no longer what was written are made anew.
        """
        if name not in self._splits:
            files = self.corpus.files(name)
            folder = self.folder / f"{name}-{fingerprint(files, self.tokenizer.sha256)}"
            cached_folder(folder, lambda into: self.write_tokens(files, into.path))
            self._splits[name] = (
                TokenizedText(folder / "source"),
                TokenizedText(folder / "target"),
            )
        return self._splits[name]

    def write_tokens(self, files: ParallelFiles, into: Path) -> None:
        """Writes the token files of a split: `<side>.ids` and `<side>.offsets`."""
        for side, file in zip(("source", "target"), files, strict=True):
            _tokenize_file(file, self.tokenizer, into / side)

    def links(self) -> TokenLinks | None:
        """The links between the tokens of training pairs, if the corpus has any."""
        links = self.corpus.alignments
        if links is None:
            return None
        files = self.corpus.files("train")
        name = fingerprint([*files, links], self.tokenizer.sha256)
        folder = self.folder / f"links-{name}"

        def write(into: FolderWriter) -> None:
            write_token_links(files, links, self.tokenizer, into.path)

        return TokenLinks(cached_folder(folder, write))

    def length_ratio(self, split: str = "train") -> float:
        """Returns mean source length over mean target length, in tokens.

        Hard-coded cross-attention needs it (the gamma of You et al. 2020).
        """
        source, target = self.split(split)
        return len(source.ids) / len(target.ids)

    def plan(
        self,
        split: str = "train",
        batch_tokens: int = 4096,
        seed: int | None = 0,
        shapes: tuple[BatchShape, ...] | None = None,
    ) -> BatchPlan:
        """Returns the `BatchPlan` of a split: shapes, batches, padding, skipped."""
        key = (split, batch_tokens, seed, shapes)
        if key not in self._plans:
            source_lengths, target_lengths = (s.lengths for s in self.split(split))
            # BOS y and y EOS; an empty target stays empty and is skipped.
            target_lengths += target_lengths > 0
            self._plans[key] = BatchPlan(
                source_lengths,
                target_lengths,
                batch_tokens=batch_tokens,
                seed=seed,
                max_length=self.max_length,
                max_shapes=self.max_shapes,
                shapes=shapes,
                mixture=self.corpus.mixture if split == "train" else None,
            )
        return self._plans[key]

    def num_batches(self, batch_tokens: int = 4096, split: str = "train") -> int:
        """Number of batches in an epoch."""
        return self.plan(split, batch_tokens).num_batches

    def training_dataset(
        self,
        batch_tokens: int = 4096,
        seed: int = 0,
        start_step: int = 0,
        shard: int = 0,
        num_shards: int = 1,
        split: str = "train",
    ) -> tf.data.Dataset:
        """Returns an endless dataset of shuffled batches.

        Batch `i` is a pure function of (seed, i), and this worker's step `k` is
        batch `shard + num_shards * k`.

        Args:
            batch_tokens: Most padded source and target positions in a batch.
            seed: Non-negative; decides the order in every epoch.
            start_step: How many of this worker's steps to skip: a resumed training
                continues with exactly the batch that it would have seen.
            shard: This worker's number.
            num_shards: Number of workers.
            split: The split to read.

        Returns:
            `({"source_ids" [B, S], "target_ids" [B, T]}, labels [B, T], weights
            [B, T])`: the source without BOS and EOS, BOS y, y EOS, and 1.0 on real
            labels; int32 ids, float32 weights. If the corpus has alignments, the
            inputs have `"alignments"` as well, bool `[B, T, S]`: which source tokens
            each label is linked to.

        Raises:
            ValueError: If `shard` or `start_step` is out of range.
        """
        if not 0 <= shard < num_shards:
            raise ValueError(
                "`shard` must be in [0, num_shards). "
                f"Received: shard={shard}, num_shards={num_shards}"
            )
        check_integer("start_step", start_step, minimum=0)
        indices = tf.data.Dataset.counter(shard + num_shards * start_step, num_shards)
        return self._dataset(indices, split, self.plan(split, batch_tokens, seed))

    def validation_dataset(
        self, batch_tokens: int = 4096, split: str = "validation", seed: int = 0
    ) -> tf.data.Dataset:
        """Returns a finite dataset over a split, always in the same order.

        If there is a training split, batches have the shapes of
        `training_dataset(batch_tokens, seed)`, so that evaluation compiles nothing new,
        and an epoch is planned once for both. Elements are the same as there.
        `plan(…).num_skipped` counts the pairs that are too long for these shapes.
        """
        shapes = (
            self.plan("train", batch_tokens, seed).shapes
            if "train" in self.corpus.splits
            else None
        )
        plan = self.plan(split, batch_tokens, None, shapes)
        return self._dataset(tf.data.Dataset.range(plan.num_batches), split, plan)

    def _dataset(
        self, indices: tf.data.Dataset, split: str, plan: BatchPlan
    ) -> tf.data.Dataset:
        """The batches of a plan with the given indices."""
        source, target = self.split(split)
        links = self.links() if split == "train" else None

        def batch(index: int) -> tuple[np.ndarray, ...]:
            return _batch(source, target, plan, self.tokenizer, index)

        def element(index: Tensor) -> tuple[dict[str, Tensor], Tensor, Tensor]:
            source_ids, target_ids, labels, weights = tf.numpy_function(
                batch, [index], (tf.int32, tf.int32, tf.int32, tf.float32)
            )
            for tensor in (source_ids, target_ids, labels, weights):
                tensor.set_shape((None, None))
            inputs = {"source_ids": source_ids, "target_ids": target_ids}
            if links is not None:
                linked = partial(_linked, links, plan)
                (alignments,) = tf.numpy_function(linked, [index], (tf.bool,))
                alignments.set_shape((None, None, None))
                inputs["alignments"] = alignments
            return inputs, labels, weights

        return indices.map(element).prefetch(tf.data.AUTOTUNE)


def _batch(
    source: TokenizedText,
    target: TokenizedText,
    plan: BatchPlan,
    tokenizer: Tokenizer,
    index: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Returns source ids, target ids, labels and weights of a batch."""
    shape, lines = plan.batch(index)
    source_ids = source.padded(lines, shape.rows, shape.source_length)
    labels = target.padded(lines, shape.rows, shape.target_length)
    target_ids = np.zeros_like(labels)
    target_ids[:, 1:] = labels[:, :-1]
    rows = np.arange(len(lines))
    target_ids[rows, 0] = tokenizer.bos_id
    labels[rows, target.offsets[lines + 1] - target.offsets[lines]] = tokenizer.eos_id
    weights = (labels != tokenizer.pad_id).astype(np.float32)
    return source_ids, target_ids, labels, weights


def _linked(links: TokenLinks, plan: BatchPlan, index: int) -> np.ndarray:
    """Returns which tokens of a batch are linked, bool `[B, T, S]`."""
    shape, lines = plan.batch(index)
    return links.matrices(lines, shape)


def _tokenize_file(file: Path, tokenizer: Tokenizer, path: Path) -> None:
    blocks = (
        tf.data.TextLineDataset(str(file))
        .batch(LINES_PER_BLOCK)
        .map(
            tokenizer.tf_tokenizer().tokenize,
            num_parallel_calls=tf.data.AUTOTUNE,
            deterministic=True,
        )
        .prefetch(tf.data.AUTOTUNE)
    )
    write_rows(blocks, path)


def write_rows(blocks: Iterable[Tensor], path: Path) -> None:
    """Writes ragged tensors `[lines, None]` of ids, one after another.

    Args:
        blocks: the tensors.
        path: both files, without their endings `.ids` and `.offsets`.
    """
    end = 0
    with (
        open(path.with_suffix(".ids"), "wb") as ids,
        open(path.with_suffix(".offsets"), "wb") as offsets,
    ):
        np.zeros(1, np.int64).tofile(offsets)
        for block in blocks:
            block.flat_values.numpy().astype(np.int32).tofile(ids)
            ends = end + np.cumsum(block.row_lengths().numpy(), dtype=np.int64)
            ends.tofile(offsets)
            end = int(ends[-1])
