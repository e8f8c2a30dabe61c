"""Token files on disk, and `tf.data` datasets of fixed-shape batches from them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from keras_attnvariants.data import tasks
from keras_attnvariants.data.alignments import write_token_links
from keras_attnvariants.data.batching import BatchPlan
from keras_attnvariants.data.batching import BatchShape
from keras_attnvariants.data.corpora import Corpus
from keras_attnvariants.data.splits import ParallelFiles
from keras_attnvariants.data.text_files import fingerprint
from keras_attnvariants.data.token_files import TokenFile
from keras_attnvariants.data.token_files import write_rows
from keras_attnvariants.data.tokenizer import BOS_ID
from keras_attnvariants.data.tokenizer import EOS_ID
from keras_attnvariants.data.tokenizer import PAD_ID
from keras_attnvariants.data.tokenizer import Tokenizer
from keras_attnvariants.utils.caches import cached_folder
from keras_attnvariants.utils.checks import check_integer
from keras_attnvariants.utils.folders import FolderWriter
from keras_attnvariants.utils.typing import Tensor

# Part of the name of token files: raise it when their format changes.
_VERSION = 2
SIDES = ("source", "target")

# Batches of a single shape would be mostly padding.
FEWEST_SHAPES = 4


class TokenizedCorpus:
    """A corpus as token ids on disk, and the datasets that training reads.

    Each split is tokenised once, by the tokenizer's `encode_file`, when it is first
    used. Neither the sources nor the ids have to fit in memory.

    Args:
        corpus: A `Corpus` from `load_corpus`.
        tokenizer: The `Tokenizer` of both languages, perhaps with a `target`, or an
            `AudioTokenizer`.
        folder: Where the token files go; default beside the cleaned corpus. They
            are reused if corpus and tokenizer are the same.
        max_length: Longest source or target in positions (a target has its EOS); by
            default that of the task. Longer pairs, and pairs with an empty side, are
            skipped; `plan(…).num_skipped` counts them. Some tasks truncate longer
            sources instead.
        max_shapes: Maximum number of batch shapes. XLA compiles one program for each;
            fewer shapes compile faster but pad more.
        batches_per_shape: Mean number of batches that a shape should have in an epoch.
            A small corpus gets fewer shapes, but up to 4 in any case.

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
        max_length: int | None = None,
        max_shapes: int = 32,
        batches_per_shape: int = 0,
    ) -> None:
        self.corpus = corpus
        self.tokenizer = tokenizer
        self.folder = Path(folder) if folder else corpus.folder / "tokens"
        self.task = tasks.get(corpus.task)
        self.max_length = max_length or self.task.max_length
        self.max_shapes = max_shapes
        self.batches_per_shape = check_integer(
            "batches_per_shape", batches_per_shape, minimum=0
        )
        self._splits: dict[str, tuple[TokenFile, TokenFile]] = {}
        self._plans: dict[tuple[Any, ...], BatchPlan] = {}

    def split(self, name: str) -> tuple[TokenFile, TokenFile]:
        """Returns source and target ids of a split, tokenised at first use.

        Files that have changed on disk are written anew.
        """
        if name not in self._splits:
            files = self.corpus.files(name)
            kind = (_VERSION, self.tokenizer.source_stride, self.tokenizer.sha256)
            folder = self.folder / f"{name}-{fingerprint(files, *kind)}"
            cached_folder(
                folder, lambda into: write_tokens(files, self.tokenizer, into.path)
            )
            source, target = (TokenFile(folder / side) for side in SIDES)
            self._splits[name] = source, target
        return self._splits[name]

    def links(self) -> TokenFile | None:
        """The links between the tokens of training pairs, if the corpus has any.

        An entry of a pair is a target token and a source token.
        """
        alignments = self.corpus.alignments
        if alignments is None:
            return None
        files = self.corpus.files("train")
        name = fingerprint([*files, alignments], self.tokenizer.sha256)

        def write(into: FolderWriter) -> None:
            path = into.path / "links"
            write_token_links(files, alignments, self.tokenizer, path)

        folder = cached_folder(self.folder / f"links-{name}", write)
        return TokenFile(folder / "links", width=2)

    def length_ratio(self, split: str = "train") -> float:
        """Returns mean source length over mean target length, in positions.

        Hard-coded cross-attention needs it (the gamma of You et al. 2020).
        """
        source, target = self.split(split)
        return len(source.ids) / self.tokenizer.source_stride / len(target.ids)

    def plan(
        self,
        split: str = "train",
        batch_tokens: int = 4096,
        seed: int | None = 0,
        shapes: tuple[BatchShape, ...] | None = None,
    ) -> BatchPlan:
        """Returns the `BatchPlan` of a split."""
        key = (split, batch_tokens, seed, shapes)
        if key not in self._plans:
            source_lengths, target_lengths = (s.lengths for s in self.split(split))
            whole, rest = np.divmod(source_lengths, self.tokenizer.source_stride)
            source_lengths = whole + (rest > 0)
            # BOS y and y EOS; an empty target stays empty and is skipped.
            target_lengths += target_lengths > 0
            if self.task.cuts_sources:
                limits = [shape.source_length for shape in shapes or ()]
                limit = max(limits, default=self.max_length)
                source_lengths = np.minimum(source_lengths, limit)
            max_shapes = self.max_shapes
            if self.batches_per_shape:
                batches = (source_lengths.sum() + target_lengths.sum()) // batch_tokens
                enough = max(FEWEST_SHAPES, int(batches) // self.batches_per_shape)
                max_shapes = min(max_shapes, enough)
            self._plans[key] = BatchPlan(
                source_lengths,
                target_lengths,
                batch_tokens=batch_tokens,
                seed=seed,
                max_length=self.max_length,
                max_shapes=max_shapes,
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
        split: str = "train",
    ) -> tf.data.Dataset:
        """Returns an endless dataset of shuffled batches.

        Batch `i` is a pure function of (seed, i). With several workers, each takes its
        share with `dataset.shard(workers, worker)`.

        Args:
            batch_tokens: Maximum number of padded source and target positions in a
                batch.
            seed: Non-negative; decides the order in every epoch.
            start_step: Number of batches to skip: a resumed training continues with
                exactly the batch that it would have seen.
            split: The split to read.

        Returns:
            `({"source_ids" [B, S], "target_ids" [B, T]}, labels [B, T], weights
            [B, T])`. Sources have no BOS and EOS, and are padded to whole positions.
            For a target y, `target_ids` are BOS y, and labels are y EOS. Weights are
            1.0 on real labels. Ids are int32, weights float32. If the corpus has
            alignments, the inputs have `"alignments"` as well, bool `[B, T, S]`: which
            source tokens each label is linked to.

        Raises:
            ValueError: If `start_step` is out of range.
        """
        indices = tf.data.Dataset.counter(
            check_integer("start_step", start_step, minimum=0)
        )
        return self._dataset(indices, split, self.plan(split, batch_tokens, seed))

    def validation_dataset(
        self, batch_tokens: int = 4096, split: str = "validation", seed: int = 0
    ) -> tf.data.Dataset:
        """Returns a finite dataset over a split, always in the same order.

        If there is a training split, batches have the shapes of
        `training_dataset(batch_tokens, seed)`, so that evaluation compiles nothing new,
        and an epoch is planned once for both. Elements are as in `training_dataset`.
        `plan(…).num_skipped` counts the pairs that are too long for these shapes.
        """
        shapes = None
        if "train" in self.corpus.splits:
            shapes = self.plan("train", batch_tokens, seed).shapes
        plan = self.plan(split, batch_tokens, None, shapes)
        return self._dataset(tf.data.Dataset.range(plan.num_batches), split, plan)

    def _dataset(
        self, indices: tf.data.Dataset, split: str, plan: BatchPlan
    ) -> tf.data.Dataset:
        """The batches of a plan with the given indices."""
        source, target = self.split(split)
        stride = self.tokenizer.source_stride
        links = self.links() if split == "train" else None
        axes = [2, 2, 2, 2] if links is None else [2, 2, 2, 2, 3]
        dtypes = [tf.int32, tf.int32, tf.int32, tf.float32, tf.bool][: len(axes)]

        def batch(index: int) -> list[np.ndarray]:
            shape, lines = plan.batch(index)
            arrays = _padded_arrays(source, target, shape, lines, stride)
            if links is not None:
                arrays.append(_alignment_matrices(links, shape, lines))
            return arrays

        def element(index: Tensor) -> tuple[dict[str, Tensor], Tensor, Tensor]:
            found = tf.numpy_function(batch, [index], dtypes)
            for tensor, rank in zip(found, axes, strict=True):
                tensor.set_shape([None] * rank)
            source_ids, target_ids, labels, weights, *alignments = found
            inputs = {"source_ids": source_ids, "target_ids": target_ids}
            if alignments:
                inputs["alignments"] = alignments[0]
            return inputs, labels, weights

        options = tf.data.Options()
        # With autotuning, a process with an unfinished epoch ends up to a minute later.
        options.autotune.enabled = False
        return indices.map(element).prefetch(tf.data.AUTOTUNE).with_options(options)


def _padded_arrays(
    source: TokenFile,
    target: TokenFile,
    shape: BatchShape,
    lines: np.ndarray,
    stride: int,
) -> list[np.ndarray]:
    """Returns source ids, target ids, labels and weights of a batch."""
    source_ids = np.zeros((shape.rows, shape.source_length * stride), np.int32)
    labels = np.zeros((shape.rows, shape.target_length), np.int32)
    for ids, file in ((source_ids, source), (labels, target)):
        rows, places, tokens = file.entries(lines)
        fits = places < ids.shape[1]
        ids[rows[fits], places[fits]] = tokens[fits]
    target_ids = np.roll(labels, 1, axis=1)
    rows = np.arange(len(lines))
    target_ids[rows, 0] = BOS_ID
    labels[rows, target.offsets[lines + 1] - target.offsets[lines]] = EOS_ID
    return [source_ids, target_ids, labels, (labels != PAD_ID).astype(np.float32)]


def _alignment_matrices(
    links: TokenFile, shape: BatchShape, lines: np.ndarray
) -> np.ndarray:
    """Returns which tokens of a batch are linked, bool `[B, T, S]`."""
    matrices = np.zeros((shape.rows, shape.target_length, shape.source_length), bool)
    rows, _, tokens = links.entries(lines)
    matrices[rows, tokens[:, 0], tokens[:, 1]] = True
    return matrices


def write_tokens(files: ParallelFiles, tokenizer: Tokenizer, into: Path) -> None:
    """Writes the token files of a split: `<side>.ids` and `<side>.offsets`."""
    tokenizers = (tokenizer, tokenizer.target)
    for side, file, of_side in zip(SIDES, files, tokenizers, strict=True):
        # 16-bit ids, such as those of samples, take half the space.
        dtype = np.uint16 if of_side.vocabulary_size <= 1 << 16 else np.int32
        write_rows(of_side.encode_file(file), into / side, dtype)
