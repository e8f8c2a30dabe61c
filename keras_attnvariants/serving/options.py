"""How an exported model searches, and what a request may hold at most."""

from dataclasses import dataclass

# A search allocates its caches for the longest translation that its source width
# allows, so a short sentence should not pay for the limit.
_NARROWEST_BUCKET = 32


@dataclass(frozen=True)
class Options:
    """How an exported model searches, and what a request may hold at most.

    Attributes:
        beam_size, length_penalty: of the beam search.
        n_best: translations that the signature `nbest` returns.
        max_batch: sentences in a request; more are refused.
        max_characters: characters of a text; the rest is cut off.
        max_tokens: tokens of a source or target; the rest is cut off.
    """

    beam_size: int
    length_penalty: float
    n_best: int
    max_batch: int
    max_characters: int
    max_tokens: int

    @property
    def buckets(self) -> tuple[int, ...]:
        """Source widths, each twice the one before, up to `max_tokens`."""
        widths, width = [], _NARROWEST_BUCKET
        while width < self.max_tokens:
            widths.append(width)
            width *= 2
        return (*widths, self.max_tokens)
