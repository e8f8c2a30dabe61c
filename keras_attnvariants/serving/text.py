"""Encodes text as token ids and decodes them, inside a graph."""

import tensorflow as tf

from keras_attnvariants.data import Tokenizer
from keras_attnvariants.utils.typing import Tensor

_LONGEST_CHARACTER = 4  # bytes in UTF-8


class GraphTokenizer:
    """A tokenizer as TensorFlow operators, with limits that hold in the graph.

    Args:
        tokenizer: the tokenizer to run.
        max_characters: characters of a text that are read; the rest is cut off.

    Attributes:
        sentencepiece: the `tensorflow_text` tokenizer, which a SavedModel has to
            track because it owns a resource.
    """

    def __init__(self, tokenizer: Tokenizer, max_characters: int) -> None:
        self.sentencepiece = tokenizer.tf_tokenizer()
        self.pad_id = tokenizer.pad_id
        self.max_characters = max_characters

    def encode(self, text: Tensor, max_tokens: int) -> tuple[Tensor, Tensor, Tensor]:
        """Token ids of texts without BOS and EOS.

        Args:
            text: string `[B]`; bytes that are not UTF-8 are read as U+FFFD.
            max_tokens: tokens of a text that are kept.

        Returns:
            ids int32 `[B, S]` padded on the right, lengths int32 `[B]`, and bool
            `[B]`, True for texts that were cut.
        """
        text, is_cut = self.cut(text)
        tokens = self.sentencepiece.tokenize(text)
        lengths = tf.cast(tokens.row_lengths(), tf.int32)
        ids = tokens[:, :max_tokens].to_tensor(self.pad_id)
        is_cut = tf.logical_or(is_cut, lengths > max_tokens)
        return ids, tf.minimum(lengths, max_tokens), is_cut

    def cut(self, text: Tensor) -> tuple[Tensor, Tensor]:
        """Valid UTF-8 of at most `max_characters` characters, and what was cut."""
        # Bounds the work on huge texts. A character that this splits lies beyond
        # the limit, where the next cut removes what remains of it.
        longest = _LONGEST_CHARACTER * (self.max_characters + 1)
        text = tf.strings.substr(text, 0, longest, unit="BYTE")
        text = tf.strings.unicode_transcode(text, "UTF-8", "UTF-8", errors="replace")
        is_cut = tf.strings.length(text, unit="UTF8_CHAR") > self.max_characters
        text = tf.strings.substr(text, 0, self.max_characters, unit="UTF8_CHAR")
        return text, is_cut

    def decode(self, ids: Tensor, lengths: Tensor) -> Tensor:
        """Texts of ids `[R, T]`, of which the first `lengths - 1` are read.

        Returns:
            string `[R]`. The last token is the EOS; a length of 0 gives `""`.
        """
        lengths = tf.maximum(lengths - 1, 0)
        return self.sentencepiece.detokenize(tf.RaggedTensor.from_tensor(ids, lengths))

    def pieces(self, ids: Tensor) -> Tensor:
        """The piece of every id, `""` for padding: string, of the shape of `ids`."""
        pieces = self.sentencepiece.id_to_string(ids)
        return tf.where(tf.equal(ids, self.pad_id), "", pieces)
