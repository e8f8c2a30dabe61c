"""`kav export` and `kav shortlist`: models for servers and other runtimes."""

import shlex
from collections.abc import Iterable
from collections.abc import Iterator
from dataclasses import dataclass
from dataclasses import fields
from pathlib import Path
from typing import Any
from typing import Literal

import typer

from keras_attnvariants.cli.catalogue import CorpusOptions
from keras_attnvariants.cli.commands import command
from keras_attnvariants.cli.commands import flag
from keras_attnvariants.cli.commands import given
from keras_attnvariants.cli.commands import option
from keras_attnvariants.cli.models import load
from keras_attnvariants.cli.models import model_folder
from keras_attnvariants.cli.models import model_task
from keras_attnvariants.cli.options import IMPORTS
from keras_attnvariants.cli.options import REQUIRED_MODEL
from keras_attnvariants.cli.options import SearchOptions
from keras_attnvariants.cli.options import check_output_file
from keras_attnvariants.cli.options import check_output_folder
from keras_attnvariants.cli.options import import_modules
from keras_attnvariants.utils.checks import check_choice

Precision = Literal["auto", "float32", "bfloat16", "int8", "int8-weights"]
Format = Literal["saved-model", "onnx", "ctranslate2"]

# The options of formats other than SavedModels, besides those of every export.
OPTIONS = {
    "onnx": {"beam_size", "length_penalty"},
    "ctranslate2": {"precision"},
}


@dataclass(frozen=True, kw_only=True)
class GraphOptions(SearchOptions):
    """Options of an exported graph: its precision and its limits."""

    precision: Precision = option(
        "auto: float32 or bfloat16, whichever is faster on this machine. int8: "
        "multiplies 8-bit integers, the fastest, on servers with AVX512-VNNI or "
        "AVX-VNNI. int8-weights: stores them only, the smallest, on any server. In "
        "float32 a translation does not depend on the others of its request.",
        "auto",
    )
    n_best: int | None = option(
        "Translations that the signature nbest returns; default: the beam size.", min=1
    )
    max_batch: int = option("Sentences in a request; more are refused.", 64, min=1)
    max_characters: int | None = option(
        "Characters of a text; the rest is cut off and reported. Default: 4096, of "
        "documents 16384.",
        min=1,
    )
    max_tokens: int | None = option(
        "Subwords of a text, likewise; default: 256, of documents 1024, or the model's "
        "limit.",
        min=1,
    )
    shortlist: Path | None = option(
        "File that `kav shortlist` wrote: which tokens translations may have, by those "
        "of their source."
    )
    shortlist_width: int | None = option(
        "Number of shortlisted tokens for each sentence; default: one in 16 of the "
        "vocabulary, but at least 500.",
        min=1,
    )
    signatures: list[str] | None = option(
        "Signature to write besides serving_default. May be repeated; default: all but "
        "translate_with and sample.",
        None,
        "--signature",
    )


@command
def export(
    *,
    model: str = REQUIRED_MODEL,
    output: Path = option(
        "Folder of all versions, such as saved_models/en-de; with another --format, a "
        "folder that does not exist.",
        ...,
    ),
    format: Format = option(
        "saved-model: for TensorFlow Serving. onnx: graphs for ONNX Runtime, and "
        "searches in Python and JavaScript, in float32. ctranslate2: for CTranslate2, "
        "with --precision float32 or int8; for models with learned attention.",
        "saved-model",
    ),
    version: int | None = option(
        "Default: one more than the newest in the folder.", min=1
    ),
    graph: GraphOptions,
    ids_only: bool = option(
        "Token ids in and out: loads without TensorFlow Text.", False
    ),
    deployment: Path | None = option(
        "Folder for the files that run TensorFlow Serving: Compose and Kubernetes "
        "files, model configuration, a proxy with limits. Files that exist there are "
        "kept."
    ),
    imports: list[str] | None = IMPORTS,
) -> None:
    """Export a model for TensorFlow Serving, ONNX Runtime or CTranslate2.

    Tokenizer, beam search and limits are part of a SavedModel, the default; serving it
    needs no Python.

    [bold]Example:[/bold] kav export --model runs/multi30k
    --output saved_models/multi30k
    """
    if format != "saved-model":
        others = {"version": version, "ids_only": ids_only, "deployment": deployment}
        check_options(format, graph, others)
    folder = model_folder("--model", model)
    check_output_folder("--output", output)
    if deployment is not None:
        check_output_folder("--deployment", deployment)
    import_modules(imports)
    if format != "saved-model":
        export_other(format, folder, output, graph)
        return
    import keras_attnvariants as kav
    from keras_attnvariants.data.tasks import task_of
    from keras_attnvariants.serving.exporting import new_version
    from keras_attnvariants.serving.precision import faster_floats

    new_version(output, version)
    options = given(graph)
    if graph.shortlist is not None:
        options["shortlist"] = kav.data.Shortlist.load(graph.shortlist)
    loaded, tokenizer = load(folder)
    measured = ""
    if graph.precision == "auto" and getattr(loaded, "quantization", None) is None:
        options["precision"], cost = faster_floats(loaded)
        measured = ": here, bfloat16 would also round partial sums"
        if cost is not None:
            measured = f": a search in bfloat16 takes {cost:.2f} of the time in float32"
    written_for = None if ids_only else tokenizer
    path = kav.serving.export(loaded, written_for, output, version=version, **options)
    show(path, measured)
    if deployment is not None:
        for file in kav.serving.write_deployment(path, deployment):
            typer.echo(file)
    if not ids_only:
        name, example = task_of(loaded).use
        use = ["kav", name, "--saved-model", str(output), example]
        typer.echo(f"Next: {shlex.join(use)}")


def check_options(format: Format, graph: GraphOptions, others: dict[str, Any]) -> None:
    """Checks that a format supports all given options.

    Args:
        format: a format other than `"saved-model"`.
        graph: options of the graph.
        others: further options by name, empty unless they were given.

    Raises:
        ValueError: it does not; the message lists the options.
    """
    changed = [f for f in fields(graph) if getattr(graph, f.name) != f.default]
    names = [f.name for f in changed if f.name not in OPTIONS[format]]
    names += [name for name, value in others.items() if value]
    if names:
        listed = ", ".join(map(flag, names)).replace("--signatures", "--signature")
        raise ValueError(f"--format {format} has no such options. Received: {listed}")
    if format == "ctranslate2":
        check_choice("--precision", graph.precision, ("auto", "float32", "int8"))


def export_other(
    format: Format, folder: Path, output: Path, graph: GraphOptions
) -> None:
    """Exports the model of a folder in a format other than a SavedModel."""
    import keras_attnvariants as kav
    from keras_attnvariants.utils.folders import check_new

    check_new(output, "--output")
    loaded, tokenizer = load(folder)
    if format == "onnx":
        options = {name: getattr(graph, name) for name in OPTIONS[format]}
        kav.serving.export_onnx(loaded, tokenizer, output, **options)
    else:
        quantization = graph.precision.replace("auto", "float32")
        kav.serving.export_ctranslate2(
            loaded, tokenizer, output, quantization=quantization
        )
    for file in sorted(output.iterdir()):
        typer.echo(f"{file} ({file.stat().st_size / 1e6:.1f} MB)")


def show(path: Path, measured: str) -> None:
    """Prints the size, the precision with what was measured, and the signatures."""
    from keras_attnvariants.serving.folders import read_info

    info = read_info(path)
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    typer.echo(f"{path} ({size / 1e6:.1f} MB)")
    computed = info["precision"]
    stored = ", 8-bit integers" if computed["quantization"] else ""
    typer.echo(f"  computes in {computed['dtype']}{stored}{measured}")
    for name, signature in info["signatures"].items():
        typer.echo(f"  {name}: {signature['doc']}")


@dataclass(frozen=True)
class Pairs:
    """The lines of two texts in pairs, which can be read repeatedly."""

    source: Iterable[Any]
    target: Iterable[Any]

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        return zip(self.source, self.target, strict=True)


@command
def shortlist(
    *,
    model: str = REQUIRED_MODEL,
    corpus: CorpusOptions,
    output: Path = option("File to write, such as shortlist.npz.", ...),
    candidates: int = option("Likely translations of each token, at most.", 50, min=1),
    common: int = option(
        "Frequent tokens that every translation may have.", 200, min=0
    ),
    imports: list[str] | None = IMPORTS,
) -> None:
    """Learn which tokens translations may have, by those of their sources.

    A lexical model is estimated from the training sentences of a corpus, in the tokens
    of a trained model. With it, `kav export --shortlist` makes an exported model
    faster.

    [bold]Example:[/bold] kav shortlist --model runs/multi30k
    --data multi30k --source en --target de --output shortlist.npz
    """
    folder = model_folder("--model", model)
    check_output_file(output)
    texts = corpus.load(model_task(folder))
    import_modules(imports)
    from keras_attnvariants.data import Shortlist
    from keras_attnvariants.data import TokenizedCorpus

    loaded, tokenizer = load(folder)
    learned = Shortlist.learn(
        Pairs(*TokenizedCorpus(texts, tokenizer).split("train")),
        loaded.source_vocabulary_size,
        loaded.vocabulary_size,
        candidates,
        common,
    )
    learned.save(output)
    found = (learned.by_source >= 0).any(axis=1).sum()
    typer.echo(
        f"{output}: {len(learned.common):,} tokens for all translations, and up to "
        f"{candidates} for each of {found:,} source tokens"
    )
    to = ["--output", "saved_models/NAME", "--shortlist", str(output)]
    typer.echo("Next: " + shlex.join(["kav", "export", "--model", model, *to]))
