"""Lines in, translations out: in chunks, in order, with a progress bar."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from itertools import islice

from rich.console import Console
from rich.progress import track

# Sentences that are translated together. The first come early; later ones fill
# batches of equal length.
FIRST_CHUNK, LARGEST_CHUNK = 32, 1024


def chunks(
    texts: Iterable[str], first: int = FIRST_CHUNK, largest: int = LARGEST_CHUNK
) -> Iterator[list[str]]:
    """Lists of texts, in order, each twice as long as the one before.

    Nothing is read ahead: memory holds one list.
    """
    iterator, size = iter(texts), first
    while chunk := list(islice(iterator, size)):
        yield chunk
        size = min(2 * size, largest)


def translated(
    translate: Callable[[list[str]], list[str]],
    texts: Iterable[str],
    chunk: int = FIRST_CHUNK,
) -> Iterator[str]:
    """The translations of texts, one by one, in their order.

    Args:
        translate: translates a list; it may sort and batch the texts of a list.
        texts: read as they are needed.
        chunk: number of texts in the first list; later lists are longer, unless it
            is 1.
    """
    for texts_of_chunk in chunks(texts, chunk, 1 if chunk == 1 else LARGEST_CHUNK):
        yield from translate(texts_of_chunk)


def with_progress(
    translate: Callable[[list[str]], list[str]], description: str
) -> Callable[[list[str]], list[str]]:
    """The same function, showing a progress bar on standard error."""

    def shown(texts: list[str]) -> list[str]:
        bar = track(
            translated(translate, texts),
            description,
            total=len(texts),
            transient=True,
            # Standard output is for results.
            console=Console(stderr=True),
        )
        return list(bar)

    return shown
