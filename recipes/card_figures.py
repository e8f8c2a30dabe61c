"""Figures for the card of a packed model: quality against float32, speed, examples."""

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from typing import NamedTuple

from model_cards import Example
from model_cards import Score
from model_cards import Speed
from sacrebleu.significance import PairedTest

from keras_attnvariants.data import Tokenizer
from keras_attnvariants.evaluation.report import environment
from keras_attnvariants.utils.machine import shared_machine
from keras_attnvariants.utils.machine import versions
from keras_attnvariants.utils.metrics import METRICS

# Runs `kav translate`, and prints its processor seconds and peak memory. A process
# inherits the peak memory of its parent, so the parent must be small.
OBSERVE = """
import resource, subprocess, sys
command = [sys.executable, "-m", "keras_attnvariants", "translate", "--model"]
status = subprocess.run([*command, *sys.argv[1:]]).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, used.ru_maxrss)
sys.exit(status)
"""


class Translated(NamedTuple):
    """Translations by a process of `kav translate`, and the resources it used.

    Attributes:
        texts: the translations.
        seconds: processor time.
        megabytes: peak memory.
    """

    texts: list[str]
    seconds: float
    megabytes: float


def measured(
    packed: Path,
    plain: Path,
    test: tuple[Sequence[str], Sequence[str]],
    samples: Sequence[tuple[str, str]],
    tokenizer: Tokenizer,
) -> dict[str, Any]:
    """The measured fields of a card; translates in processes of one thread.

    Args:
        packed: the folder of the packed model.
        plain: the folder of the same model in float32.
        test: sources and references.
        samples: source and reference of each example.
        tokenizer: the tokenizer of the model, for counting tokens.

    Raises:
        ChildProcessError: a translation failed; its process has printed why.
    """
    sources, references = test
    start = translated(packed, [source for source, _ in samples])
    found = translated(packed, sources)
    scores = paired_scores(found.texts, translated(plain, sources).texts, references)
    examples = map(example, samples, start.texts)
    return {
        "bleu": next(score.packed for score in scores if score.name == "BLEU"),
        "scores": scores,
        "speed": speed_of(tokenizer, start, found),
        "examples": sorted(examples, key=lambda one: one.chrf, reverse=True),
    }


def translated(model: Path, texts: Sequence[str]) -> Translated:
    """Translates texts with `kav translate` in a separate process with one thread.

    Raises:
        ChildProcessError: the process failed, and has printed why.
    """
    with tempfile.TemporaryDirectory() as place, shared_machine(1, threads=1):
        lines, written = Path(place) / "input", Path(place) / "output"
        lines.write_text("".join(f"{text}\n" for text in texts), "utf-8", newline="\n")
        files = ["--input", str(lines), "--output", str(written)]
        command = [sys.executable, "-c", OBSERVE, str(model), *files]
        process = subprocess.run(command, stdout=subprocess.PIPE)  # noqa: S603
        if process.returncode:
            raise ChildProcessError(
                f"`kav translate` failed. Received: status {process.returncode}"
            )
        found = written.read_text("utf-8").split("\n")[:-1]
    seconds, size = map(float, process.stdout.split()[-2:])
    # In bytes on macOS, else in KiB.
    return Translated(found, seconds, size / (1e6 if sys.platform == "darwin" else 977))


def paired_scores(
    packed: Sequence[str], float32: Sequence[str], references: Sequence[str]
) -> list[Score]:
    """sacreBLEU's scores of the packed model and of the same model in float32."""
    test = PairedTest(
        [("float32", float32), ("packed", packed)],
        {name: METRICS[name]() for name in ("bleu", "chrf", "ter")},
        [references],
        test_type="bs",
    )
    signatures, found = test()
    results: dict[str, list[Any]] = dict(found)
    return [
        Score(
            name=name,
            signature=str(signature),
            packed=round(float(ours.score), 2),
            packed_interval=round(float(ours.ci), 2),
            float32=round(float(plain.score), 2),
            float32_interval=round(float(plain.ci), 2),
            p_value=round(float(ours.p_value), 3),
        )
        for name, signature in signatures.items()
        for plain, ours in [results[name]]
    ]


def speed_of(tokenizer: Tokenizer, start: Translated, found: Translated) -> Speed:
    """The speed of a model, without its start and its first sentences.

    Args:
        tokenizer: the tokenizer of the model.
        start: translations of a few sentences.
        found: translations of many sentences.
    """
    seconds = found.seconds - start.seconds
    tokens, first = (
        sum(map(len, tokenizer.target.encode(one.texts))) for one in (found, start)
    )
    return Speed(
        round((len(found.texts) - len(start.texts)) / seconds, 1),
        round((tokens - first) / seconds, 1),
        round(start.seconds, 1),
        round(found.megabytes),
        {**versions(("keras_attnvariants", "tensorflow")), **environment()},
    )


def example(sample: tuple[str, str], translation: str) -> Example:
    """An example with its translation and chrF."""
    source, reference = sample
    score = METRICS["chrf"]().sentence_score(translation, [reference]).score
    return Example(source, translation, reference, round(score, 1))
