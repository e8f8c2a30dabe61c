"""Size, memory and decoding time of the systems of comparisons, exported.

The models have random weights, so that no training is needed: their cost depends on
their architecture alone. Every model decodes in its own process, which has TensorFlow
and not this package, on one thread. They take turns, and CPU time counts.
"""

import os
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Annotated

# Before TensorFlow is imported: errors only.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import typer
from decoding import Output
from decoding import Work
from decoding import finish
from measuring import Report
from measuring import TableRow
from measuring import ratio
from peers import model
from peers.process import Program
from serving import Form
from serving import measure
from serving import never_predict

import keras_attnvariants as kav
from keras_attnvariants.experiments.settings import read_settings

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

LENGTH = 15
BATCHES = [1, 8, 64]
TEXT = (
    "Exported models with random weights, as `kav export --ids-only` writes them. The "
    "size is that of the whole folder, memory what the process uses beyond its "
    "imports after its first answer. Times are milliseconds of the processor for "
    "one sentence in requests of so many; ratios are to the first system, above 1 "
    "means slower."
)


def build_systems(files: list[Path]) -> dict[str, keras.Model]:
    """The systems of comparisons by name; of several with one name, the first."""
    built: dict[str, keras.Model] = {}
    for file in files:
        settings = read_settings(file)
        for system in settings.systems:
            if system.name in built:
                continue
            options = dict(system.options)
            if settings.vocabulary.size:
                options["vocabulary_size"] = settings.vocabulary.size
            made = kav.presets.get(system.preset).build(**options)
            never_predict(model.SPECIAL_IDS, made)
            # Searches end with EOS at the last position, not before.
            made.search_settings = kav.models.SearchSettings(extra_length=0)
            built[system.name] = made
    return built


@app.command()
def costs(
    comparisons: Annotated[list[Path], typer.Argument(help="Files of comparisons.")],
    precision: Annotated[
        Form, typer.Option(help="Precision of the exports.")
    ] = Form.AUTO,
    batch: Annotated[
        list[int], typer.Option(min=1, help="Sentences in a request.")
    ] = BATCHES,
    beams: Annotated[int, typer.Option(min=2, help="Hypotheses of a sentence.")] = 5,
    runs: Annotated[int, typer.Option(min=1, help="Timed runs of each.")] = 7,
    cores: Annotated[str, typer.Option(help="Cores to run on, such as 0,1.")] = "",
    output: Output = None,
) -> None:
    """Size, memory and time of the systems of one or more comparisons."""
    models = build_systems(comparisons)
    first = next(iter(models))
    vocabulary = min(made.vocabulary_size for made in models.values())
    work = Work(vocabulary, 0, 0, 0, 0, LENGTH, LENGTH, beams, runs, 1, cores)
    rows: dict[str, TableRow] = {}
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        programs = {}
        for name, made in models.items():
            options = {"beam_size": beams, "max_tokens": 64}
            options |= precision.options(vocabulary)
            path = kav.serving.export(made, None, Path(folder) / name, **options)
            size = sum(file.stat().st_size for file in path.rglob("*"))
            own = work.options | {"path": str(path)}
            program = stack.enter_context(Program(sys.executable, "saved", own))
            program.decode(work.sources(1), work.steps)
            programs[name] = program
            rows[name] = {
                "system": name,
                "parameters": made.count_params(),
                "size, MB": size / 1e6,
                "memory, MB": program.memory / 1e6,
            }
        for sentences in batch:
            found = measure(programs, work, sentences)
            for name, seconds in found.items():
                rows[name] |= {
                    f"ms, batch {sentences}": 1e3 * median(seconds) / sentences,
                    f"ratio, batch {sentences}": ratio(seconds, found[first]),
                }
    setting = (
        f"{precision.value}, beam of {beams}, {LENGTH} tokens in and out, 1 thread"
    )
    title = "Costs of the systems of comparisons"
    finish(Report(title, TEXT, setting, [*rows.values()], ()), output)


if __name__ == "__main__":
    app()
