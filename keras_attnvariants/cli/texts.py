"""Texts in, translations out: in chunks, in order, with a progress bar."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from itertools import islice

from keras_attnvariants.cli.progress import LineProgress

# Sentences that are translated together. The first come early; later ones fill
# batches of equal length.
FIRST_CHUNK, LARGEST_CHUNK = 32, 1024


def chunks(
    texts: Iterable[str],
    first: int = FIRST_CHUNK,
    largest: int = LARGEST_CHUNK,
    done: int = 0,
) -> Iterator[list[str]]:
    """Lists of texts, in order, each twice as long as the one before.

    Nothing is read ahead: memory holds one list.

    Args:
        texts: read as they are needed.
        first: length of the first list.
        largest: length of the longest.
        done: texts before these. Lists end where they would if those came first: what
            is translated together does not depend on an interruption.
    """
    iterator, size, end = iter(texts), first, first
    while end <= done:
        size = min(2 * size, largest)
        end += size
    while chunk := list(islice(iterator, end - done)):
        yield chunk
        done += len(chunk)
        size = min(2 * size, largest)
        end += size


def with_progress(
    translate: Callable[[list[str]], list[str]], description: str
) -> Callable[[list[str]], list[str]]:
    """The same function, showing a progress bar on standard error."""

    def shown(texts: list[str]) -> list[str]:
        translations: list[str] = []
        with LineProgress(len(texts), description) as progress:
            for chunk in chunks(texts):
                translations += translate(chunk)
                progress.update(len(translations), len(translations))
        return translations

    return shown
