"""Tables of the measurements of exported models: rows, bars and explanations."""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from decoding_tables import CTRANSLATE2
from measuring import TableRow
from measuring import ratio
from measuring import uses_avx512

from keras_attnvariants.serving.graphs import Graph
from keras_attnvariants.serving.graphs import called_functions
from keras_attnvariants.serving.graphs import read_saved_model

# The operators of loops.
LOOPS = frozenset({"While", "StatelessWhile"})
# Operators that take no time: arguments, constants, and names of other outputs.
FREE = frozenset({"Const", "Identity", "IdentityN", "NoOp", "Placeholder"})

# A variant, or another program, and its precision.
Key = tuple[str, str]

PEER = (CTRANSLATE2, "int8")

# Tokens per second over those of CTranslate2 in int8, by width and variant, by batch.
SPEED_BARS = {
    (256, "base"): {1: 0.4, 8: 0.8, 64: 1.1},
    (512, "base"): {1: 0.8, 8: 0.95, 64: 1.1},
    (256, "hc-sa"): {1: 0.5, 8: 1.0, 64: 1.4},
    (512, "hc-sa"): {1: 0.9, 8: 1.1, 64: 1.4},
}
SPEED_BARS_WITHOUT_AVX512 = {
    (256, "base"): {1: 0.45, 8: 0.65, 64: 0.75},
    (512, "base"): {1: 0.5, 8: 0.6, 64: 0.75},
    (256, "hc-sa"): {1: 0.5, 8: 0.85, 64: 1.0},
}

SPEED_TEXT = (
    "SavedModels as `kav export --ids-only` writes them, in a process that has "
    "TensorFlow and not this package, beside CTranslate2 with "
    "int8 weights. Models have random weights: of `base` the same as CTranslate2's, in "
    "the form of MarianMT; of other variants, those of the presets `kav/VARIANT/bible` "
    "or `kav/VARIANT/multi30k` in the same size, compared with CTranslate2's `base`. "
    "Width 256 has 3 + 3 layers and a vocabulary of 8,000, width 512 has 6 + 6 layers "
    "and 32,000. Tokens are those of the best translations, and seconds those that the "
    "processor spent on the process, which a busy machine does not change much. "
    "Operators are those of one decoding step in the saved graph; TensorFlow merges "
    "some. Load, first answer (batch 1) and memory are those of the process beyond its "
    "imports. Bars hold for the fastest form of a model: of those with the whole "
    "vocabulary, and of those with a shortlist (`--shortlist`), here a made-up one of "
    "one token in 16. CTranslate2 ran with its defaults and the whole vocabulary, "
    "without `torch.compile`, which does not apply to it."
)

START_TEXT = (
    "The model `kav/hc-sa/bible`, with random weights, from the folder on disk to its "
    "first translation. The exported model is loaded and run by TensorFlow alone; "
    "memory is the most that the process used, beyond what it used after its imports. "
    "`kav translate` is a whole process, TensorFlow's import included. Random weights "
    "make the translation as long as possible, 59 tokens for 9 words."
)


def start_bars(tensorflow: float) -> dict[str, float]:
    """Upper bounds of each measurement, given the seconds of TensorFlow's import."""
    cold = 1.3 * tensorflow + 1
    return {
        "graph, MB": 5.0,
        "load, CPU seconds": 2.5,
        "first answer, CPU seconds": 2.5,
        "memory, MB": 400.0,
        "kav translate --saved-model, CPU seconds": cold,
        "kav translate --model, CPU seconds": cold,
    }


@dataclass(frozen=True)
class Exported:
    """Time and memory of one program before it is warm.

    Attributes:
        path: folder of the exported model; `None` for another program's.
        load, first: CPU seconds of loading and of the first answer.
        memory: peak of the bytes in use after the first answer, beyond the imports.
    """

    path: Path | None
    load: float
    first: float
    memory: int

    def columns(self) -> TableRow:
        """The measurements as columns of a table."""
        size = self.path and (self.path / "saved_model.pb").stat().st_size / 1e6
        return {
            "operators per step": self.path and operators_per_step(self.path),
            "graph, MB": size,
            "load, s": self.load,
            "first answer, s": self.first,
            "memory, MB": self.memory / 1e6,
        }


def speed_rows(
    width: int,
    batch: int,
    steps: int,
    seconds: Mapping[Key, list[float]],
    exported: Mapping[Key, Exported],
) -> list[TableRow]:
    """One row per program and form; the fastest form of each kind has the bar."""
    all_bars = SPEED_BARS if uses_avx512() else SPEED_BARS_WITHOUT_AVX512
    rows = []
    for key, own in seconds.items():
        rivals = [other for other in seconds if kind(other) == kind(key)]
        best = min(rivals, key=lambda rival: median(seconds[rival]))
        bars = all_bars.get((width, key[0]), {}) if key == best else {}
        peer = seconds.get(PEER)
        rows.append(
            {
                "model": f"width {width}",
                "batch": batch,
                "program": key[0],
                "precision": key[1],
                "tokens per CPU second": batch * steps / median(own),
                "of CTranslate2": ratio(peer, own) if peer else None,
                "bar": bars.get(batch) if peer else None,
                **exported[key].columns(),
            }
        )
    return rows


def kind(key: Key) -> tuple[str, bool]:
    """The variant, and whether its translations are limited to a shortlist."""
    return key[0], "shortlist" in key[1]


def operators_per_step(path: Path) -> int:
    """The number of operators that a decoding step runs, with those of its functions.

    Constants and `Identity` are not counted. TensorFlow may fuse some of the operators
    when it loads the graph.

    Args:
        path: folder of one version.

    Returns:
        Operators of the longest loop body without an inner loop; 0 if there is none.
    """
    functions = Graph(read_saved_model(path).meta_graphs[0]).functions
    bodies = {
        node.attr["body"].func.name
        for nodes in functions.values()
        for node in nodes
        if node.op in LOOPS
    }
    found = [list(inlined(functions[name], functions)) for name in bodies]
    lengths = [len(names) for names in found if LOOPS.isdisjoint(names)]
    return max(lengths, default=0)


def inlined(nodes: Iterable[Any], functions: dict[str, Any]) -> Iterator[str]:
    """The operators of nodes, with calls replaced by the operators of functions."""
    for node in nodes:
        called = called_functions(node, functions)
        if node.op in LOOPS or (not called and node.op not in FREE):
            yield node.op
        for name in called:
            yield from inlined(functions[name], functions)
