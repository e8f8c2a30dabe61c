"""Converts models of other toolkits to models of this package."""

import functools
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from keras_attnvariants.attention import DotProductAttention
from keras_attnvariants.data import Tokenizer
from keras_attnvariants.data.sentencepiece_models import with_pieces
from keras_attnvariants.foreign.vocabulary import ForeignVocabulary
from keras_attnvariants.models import SinusoidalPositions
from keras_attnvariants.models import Transformer
from keras_attnvariants.models.transfer import by_path

# Files of SentencePiece models of sources and of targets.
SUBWORDS = ("source.spm", "target.spm")
# Other toolkits' names of activations, and those of Keras.
ACTIVATIONS = {"relu": "relu", "swish": "silu", "silu": "silu", "gelu": "gelu"}


class ForeignArrays:
    """Arrays by name, as float32; each is taken once.

    Args:
        arrays: the arrays.
        file: name of their file, for messages.
    """

    def __init__(self, arrays: Mapping[str, np.ndarray], file: str) -> None:
        self._left, self._file = dict(arrays), file

    def __contains__(self, name: str) -> bool:
        return name in self._left

    def take(self, *names: str) -> np.ndarray:
        """The array that has one of these names; the other names are copies of it.

        Raises:
            ValueError: there is none, or it does not consist of finite floats.
        """
        found = {name: self._left.pop(name) for name in names if name in self._left}
        if not found:
            raise ValueError(
                f"{self._file} must have {names[0]}, with the layers that its "
                "configuration names. Received: a file without it"
            )
        name, array = next(iter(found.items()))
        if array.dtype.kind != "f" or not np.isfinite(array).all():
            raise ValueError(
                f"{self._file} must have finite floats. Received: {name}, {array.dtype}"
            )
        return array.astype("float32")

    def take_bias(self, name: str, size: int) -> np.ndarray:
        """The bias of `size` logits that has this name; zeros if there is none."""
        return self.take(name).reshape(-1) if name in self else np.zeros(size)

    def check_all_taken(self) -> None:
        """Raises `ValueError` if there are arrays that were not taken."""
        if self._left:
            first, *others = sorted(self._left)
            more = f" and {len(others)} more" if others else ""
            raise ValueError(
                f"{self._file} has weights of layers that this package does not have. "
                f"Received: {first}{more}"
            )


@dataclass(frozen=True)
class ForeignModel:
    """A post-norm Transformer with learned attention, as another toolkit stores it.

    Attributes:
        arrays: its weights.
        block_weight: function of `arrays` and our name for a weight of a block;
            returns the array in our layout.
        source_table, target_table: embeddings `[V, width]`; one object if they are
            shared.
        output: projection to logits `[width, V]`; `None` for the target embeddings.
        bias: bias of the logits, `[V]`.
        source, target: vocabularies; one object if they are shared.
        subwords: SentencePiece models of sources and of targets.
        heads: number of heads of encoder and decoder.
        endpoint: as for `SinusoidalPositions`.
        options: further arguments of `Transformer`, such as numbers of layers.
        max_length: as for `Transformer`.
    """

    arrays: ForeignArrays
    block_weight: Callable[[ForeignArrays, str], np.ndarray]
    source_table: np.ndarray
    target_table: np.ndarray
    output: np.ndarray | None
    bias: np.ndarray
    source: ForeignVocabulary
    target: ForeignVocabulary
    subwords: Sequence[bytes]
    heads: tuple[int, int]
    endpoint: bool
    options: dict[str, Any]
    max_length: int = 512


def converted(foreign: ForeignModel) -> tuple[Transformer, Tokenizer]:
    """A model that computes the same, with its tokenizer.

    Raises:
        ValueError: its parts do not fit together, or this package lacks one of its
            layers.
    """
    if foreign.source is foreign.target:
        source = target = foreign.source.adopted(foreign.subwords)
    else:
        source = foreign.source.adopted(foreign.subwords[:1])
        target = foreign.target.adopted(foreign.subwords[1:])
    check_rows(foreign.source_table, foreign.source)
    check_rows(foreign.target_table, foreign.target)
    model = random_model(foreign, len(source.pieces), len(target.pieces))
    tables = {
        "embeddings/target/embeddings": target.table(foreign.target_table),
        "embeddings/source/embeddings": source.table(foreign.source_table),
    }
    bias = target.bias(foreign.bias)
    if foreign.output is None:
        tables["embeddings/bias"] = bias
    else:
        tables["embeddings/output/kernel"] = target.table(foreign.output.T).T
        tables["embeddings/output/bias"] = bias
    for name, weight in by_path(model.weights).items():
        if name in tables:
            weight.assign(tables[name])
        else:
            weight.assign(foreign.block_weight(foreign.arrays, name))
    foreign.arrays.check_all_taken()
    tokenizer = Tokenizer.for_sides(
        with_pieces(foreign.subwords[0], source.pieces),
        with_pieces(foreign.subwords[1], target.pieces, unused=target.missing),
    )
    return model, tokenizer


def random_model(
    foreign: ForeignModel, source_size: int, target_size: int
) -> Transformer:
    """The model with random weights, for vocabularies of these sizes."""
    attention = functools.partial(DotProductAttention, use_bias=True)
    tying = "none"
    if foreign.output is None:
        is_one = foreign.source_table is foreign.target_table
        tying = "all" if is_one and foreign.source is foreign.target else "decoder"
    return Transformer(
        vocabulary_size=target_size,
        source_vocabulary_size=source_size,
        hidden_dim=foreign.target_table.shape[1],
        encoder_attention=attention(foreign.heads[0]),
        decoder_attention=attention(foreign.heads[1]),
        cross_attention=attention(foreign.heads[1]),
        normalization="post",
        # One more than the length of sources, for their EOS.
        positions=SinusoidalPositions(foreign.max_length + 1, foreign.endpoint),
        tie_embeddings=tying,
        softmax_bias=True,
        source_eos=True,
        max_length=foreign.max_length,
        **foreign.options,
    )


def check_rows(table: np.ndarray, vocabulary: ForeignVocabulary) -> None:
    """Raises `ValueError` unless there is an embedding for each token."""
    if len(table) != len(vocabulary.tokens):
        raise ValueError(
            f"The vocabulary must have {len(table):,} tokens, as many as the model has "
            f"embeddings. Received: {len(vocabulary.tokens):,}"
        )
