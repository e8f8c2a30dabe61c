"""How an exported model searches, and what a request may hold at most."""

from dataclasses import dataclass

# Beyond the narrowest, each is wider than the one before by half at most: a request
# costs little more than its longest source needs.
_BUCKETS = (8, 16, 24, 32, 48, 64, 96, 128, 192)


@dataclass(frozen=True)
class Options:
    """How an exported model searches, and what a request may hold at most.

    Attributes:
        beam_size, length_penalty: of the beam search.
        n_best: translations that the signature `nbest` returns.
        max_batch: sentences in a request; more are refused.
        max_characters: characters of a text; the rest is cut off.
        max_tokens: tokens of a source or target; the rest is cut off.
        onednn: whether integers are multiplied by an operator of oneDNN.
        packed: whether decoding steps read their weights as constants.
        shortlist_width: tokens that the translations of a sentence may have, if there
            is a shortlist.
    """

    beam_size: int
    length_penalty: float
    n_best: int
    max_batch: int
    max_characters: int
    max_tokens: int
    onednn: bool = False
    packed: bool = False
    shortlist_width: int | None = None

    @property
    def buckets(self) -> tuple[int, ...]:
        """Source widths in ascending order, the last of them `max_tokens`."""
        widths = list(_BUCKETS)
        while widths[-1] < self.max_tokens:
            widths.append(2 * widths[-2])
        return (*(w for w in widths if w < self.max_tokens), self.max_tokens)
