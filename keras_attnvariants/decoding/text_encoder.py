"""From texts to ids that a model accepts."""

import warnings
from collections.abc import Sequence
from typing import Protocol


class TextTokenizer(Protocol):
    """What `Translator` asks of a tokenizer, such as `keras_attnvariants.Tokenizer`."""

    def encode(self, texts: Sequence[str]) -> Sequence[Sequence[int]]:
        """The ids of each text, without BOS and EOS."""

    def decode(self, ids: Sequence[Sequence[int]]) -> Sequence[str]:
        """The texts of lists of ids."""


class TextEncoder:
    """Encodes texts, and cuts those that are too long.

    Args:
        tokenizer: to encode with.
        longest: number of tokens of a text that are kept.

    Attributes:
        num_truncated: how many texts were cut so far; the first gives a warning.
    """

    def __init__(self, tokenizer: TextTokenizer, longest: int) -> None:
        self.tokenizer = tokenizer
        self.longest = longest
        self.num_truncated = 0

    def encode(
        self, name: str, texts: Sequence[str], room_for: int = 0
    ) -> list[list[int]]:
        """Ids of each text, none for those that are empty or white space.

        Args:
            name: of the argument, for messages.
            texts: what to encode.
            room_for: how many tokens will be added.

        Raises:
            TypeError: they are no sequence of strings.
        """
        is_list = isinstance(texts, Sequence) and not isinstance(texts, str | bytes)
        if not is_list or not all(isinstance(text, str) for text in texts):
            raise TypeError(
                f"`{name}` must be a sequence of strings. Received: {texts!r:.80}"
            )
        ids: list[list[int]] = [[] for _ in texts]
        indices = [index for index, text in enumerate(texts) if text.strip()]
        encoded = self.tokenizer.encode([texts[index] for index in indices])
        longest = self.longest - room_for
        too_long = sum(len(tokens) > longest for tokens in encoded)
        if too_long and not self.num_truncated:
            warnings.warn(
                f"`{name}` has texts of more than {longest} tokens. They are "
                "truncated, and counted in `num_truncated`.",
                stacklevel=3,
            )
        self.num_truncated += too_long
        for index, tokens in zip(indices, encoded, strict=True):
            ids[index] = list(tokens[:longest])
        return ids
