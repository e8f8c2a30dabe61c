"""Memory and time to the first batch of corpora that are larger than memory."""

import hashlib
import os
import tempfile
import time
from pathlib import Path
from typing import Annotated
from typing import Any

# Before TensorFlow is imported: errors only.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import typer
from measuring import Report
from measuring import TableRow
from peak import in_own_process
from peak import resident

import keras_attnvariants as kav
from keras_attnvariants.data.bucketing import blocks
from keras_attnvariants.data.splits import ParallelFiles

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

GB = 10**9
BAR = 2.0
WORDS = ["aba bab", "abba baba", "baab abab"]
COMPARED = 20

TEXT = (
    "A process reads token files of made-up lengths, plans an epoch, shuffles it and "
    "makes the first batch. Another one does the same from the middle of the epoch, "
    "like a training that is resumed there. Memory is the largest resident set of the "
    "process, TensorFlow included; seconds are from its first line, the import of "
    "TensorFlow included, and planning is a part of them. The tokens themselves are "
    "holes in a file, which take no room on the disk."
)


def write_tokens(folder: Path, pairs: int) -> None:
    """Writes token files with the lengths of some newspaper text, block by block."""
    random = np.random.default_rng(pairs)
    ends = [0, 0]
    files = [(folder / side).with_suffix(".offsets") for side in ("source", "target")]
    with files[0].open("wb") as source, files[1].open("wb") as target:
        for file in (source, target):
            np.zeros(1, np.int64).tofile(file)
        for block in blocks(pairs):
            count = block.stop - block.start
            mean = random.gamma(3, 8, count)
            for side, file in enumerate((source, target)):
                offsets = ends[side] + np.cumsum(1 + random.poisson(mean))
                offsets.astype(np.int64).tofile(file)
                ends[side] = int(offsets[-1])
    for path, end in zip(files, ends, strict=True):
        with path.with_suffix(".ids").open("wb") as file:
            file.truncate(4 * end)


def tokens_of(folder: Path) -> Any:
    """A corpus whose tokens are already in a folder."""
    from keras_attnvariants.data.pipeline import TokenizedCorpus
    from keras_attnvariants.data.token_files import TokenFile

    sides = TokenFile(folder / "source"), TokenFile(folder / "target")

    class Tokenized(TokenizedCorpus):
        def split(self, name: str) -> tuple[TokenFile, TokenFile]:
            return sides

    files = ParallelFiles(folder / "source.ids", folder / "target.ids")
    corpus = kav.data.Corpus("made up", "xx", "yy", folder, {"train": files}, {})
    return Tokenized(corpus, kav.Tokenizer.train(WORDS, 12))


def measure(folder: Path, batch_tokens: int, from_middle: bool) -> dict[str, Any]:
    """Measures the time and memory of the first batch, and digests some batches.

    Returns:
        Seconds, CPU seconds, seconds of planning, bytes, and a digest of some batches
        in the middle.
    """
    start, used = time.perf_counter(), time.process_time()
    tokens = tokens_of(folder)
    imported = time.perf_counter()
    plan = tokens.plan("train", batch_tokens, seed=1)
    planned = time.perf_counter()
    middle = plan.num_batches // 2
    step = middle if from_middle else 0
    dataset = tokens.training_dataset(batch_tokens, seed=1, start_step=step)
    next(dataset.take(1).as_numpy_iterator())
    found = {
        "seconds": time.perf_counter() - start,
        "CPU seconds": time.process_time() - used,
        "planning": planned - imported,
        "bytes": resident("VmHWM"),
        "batches": plan.num_batches,
    }
    if not from_middle:
        # Batches from the middle, without the time to get there.
        dataset = tokens.training_dataset(batch_tokens, seed=1, start_step=middle)
    digest = hashlib.sha256()
    for inputs, *rest in dataset.take(COMPARED).as_numpy_iterator():
        for array in (*inputs.values(), *rest):
            digest.update(array.tobytes())
    return found | {"middle": digest.hexdigest()}


def rows_of(pairs: int, batch_tokens: int, folder: Path | None) -> list[TableRow]:
    """A row for the beginning of an epoch, and one for its middle."""
    with tempfile.TemporaryDirectory(dir=folder) as name:
        in_own_process(write_tokens, Path(name), pairs)
        found = {
            label: in_own_process(measure, Path(name), batch_tokens, from_middle)
            for label, from_middle in (("beginning", False), ("middle", True))
        }
    if len({values["middle"] for values in found.values()}) > 1:
        raise RuntimeError("The batches in the middle are not those that follow.")
    return [
        {
            "pairs": f"{pairs:,}",
            "from": label,
            "batches": values["batches"],
            "planning, s": values["planning"],
            "first batch, s": values["seconds"],
            "CPU, s": values["CPU seconds"],
            "memory, GB": values["bytes"] / GB,
            "bar": BAR,
        }
        for label, values in found.items()
    ]


@app.command()
def main(
    pairs: Annotated[
        list[int] | None,
        typer.Option(min=1, help="Sentence pairs of a corpus; repeatable."),
    ] = None,
    batch_tokens: Annotated[
        int, typer.Option(min=1, help="Source and target positions of a batch.")
    ] = 4096,
    folder: Annotated[
        Path | None, typer.Option(help="Folder for temporary token files.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="File for the numbers, as JSON.")
    ] = None,
) -> None:
    """Memory and time to the first batch; by default for 1, 10 and 50 million pairs."""
    sizes = pairs or [10**6, 10**7, 5 * 10**7]
    rows = [row for size in sizes for row in rows_of(size, batch_tokens, folder)]
    setting = f"batches of {batch_tokens:,} positions"
    report = Report(
        "To the first batch", TEXT, setting, rows, ("memory, GB",), at_most=True
    )
    report.show()
    if output is not None:
        report.write(output)


if __name__ == "__main__":
    app()
