"""`kav export`, `kav shortlist` and `kav serve`: models for servers."""

import asyncio
import json
import shlex
import tempfile
from collections.abc import Iterable
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from typing import Literal

import typer

from keras_attnvariants.cli.catalogue import CorpusOptions
from keras_attnvariants.cli.commands import argument
from keras_attnvariants.cli.commands import command
from keras_attnvariants.cli.commands import given
from keras_attnvariants.cli.commands import option
from keras_attnvariants.cli.models import MODEL
from keras_attnvariants.cli.models import SAVED
from keras_attnvariants.cli.models import check_place
from keras_attnvariants.cli.models import load
from keras_attnvariants.cli.options import IMPORTS
from keras_attnvariants.cli.options import REQUIRED_MODEL
from keras_attnvariants.cli.options import SearchOptions
from keras_attnvariants.cli.options import check_output_file
from keras_attnvariants.cli.options import check_output_folder
from keras_attnvariants.cli.options import import_modules
from keras_attnvariants.utils.checks import check_positive
from keras_attnvariants.utils.importing import import_tensorflow
from keras_attnvariants.utils.machine import check_extra

Precision = Literal["auto", "float32", "bfloat16", "int8", "int8-weights"]


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
    max_characters: int = option(
        "Characters of a text; the rest is cut off and reported.", 4096, min=1
    )
    max_tokens: int | None = option(
        "Subwords of a text, likewise; default: 256, or the model's limit.", min=1
    )
    shortlist: Path | None = option(
        "File of kav.data.Shortlist: which tokens translations may have, by those of "
        "their source."
    )
    shortlist_width: int | None = option(
        "Tokens that each sentence has of the shortlist; default: one in 16 of the "
        "vocabulary, but at least 500.",
        min=1,
    )
    signatures: list[str] | None = option(
        "A signature to write besides serving_default; once for each. Default: all but "
        "translate_with and sample.",
        None,
        "--signature",
    )


@command
def export(
    *,
    model: Path = REQUIRED_MODEL,
    output: Path = option("Folder of all versions, such as saved_models/en-de.", ...),
    version: int | None = option(
        "Default: one more than the newest in the folder.", min=1
    ),
    graph: GraphOptions,
    ids_only: bool = option(
        "Token ids in and out: loads without TensorFlow Text.", False
    ),
    deployment: Path | None = option(
        "Folder for what it takes to run TensorFlow Serving: Compose and Kubernetes "
        "files, model configuration, a proxy with limits. Files that exist there are "
        "kept."
    ),
    imports: list[str] | None = IMPORTS,
) -> None:
    """Export a model as a SavedModel for TensorFlow Serving.

    Tokenizer, beam search and limits are part of it; serving it needs no Python.

    [bold]Example:[/bold] kav export --model runs/multi30k
    --output saved_models/multi30k
    """
    check_place("--model", model, MODEL)
    check_output_folder("--output", output)
    if deployment is not None:
        check_output_folder("--deployment", deployment)
    import_modules(imports)
    import keras_attnvariants as kav
    from keras_attnvariants.serving.exporting import new_version

    new_version(output, version)
    options = given(graph)
    if graph.shortlist is not None:
        options["shortlist"] = kav.data.Shortlist.load(graph.shortlist)
    loaded, tokenizer = load(model)
    written_for = None if ids_only else tokenizer
    path = kav.serving.export(loaded, written_for, output, version=version, **options)
    show(path)
    if deployment is not None:
        for file in kav.serving.write_deployment(path, deployment):
            typer.echo(file)
    if not ids_only:
        saved = shlex.quote(str(output))
        typer.echo(f"Next: kav translate --saved-model {saved} 'A sentence.'")


def show(path: Path) -> None:
    """Prints what was written: its size, and its signatures."""
    info = json.loads((path / "assets.extra" / "model_info.json").read_text())
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    typer.echo(f"{path} ({size / 1e6:.1f} MB)")
    computed = info["precision"]
    stored = ", 8-bit integers" if computed["quantization"] else ""
    typer.echo(f"  computes in {computed['dtype']}{stored}")
    for name, signature in info["signatures"].items():
        typer.echo(f"  {name}: {signature['doc']}")


@dataclass(frozen=True)
class Pairs:
    """The lines of two texts side by side, as often as they are asked for."""

    source: Iterable[Any]
    target: Iterable[Any]

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        return zip(self.source, self.target, strict=True)


@command
def shortlist(
    *,
    model: Path = REQUIRED_MODEL,
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
    of a trained model. `kav export --shortlist` makes the exported model faster by it.

    [bold]Example:[/bold] kav shortlist --model runs/multi30k
    --data multi30k --source en --target de --output shortlist.npz
    """
    check_place("--model", model, MODEL)
    check_output_file(output)
    texts = corpus.load()
    import_modules(imports)
    from keras_attnvariants.data import Shortlist
    from keras_attnvariants.data import TokenizedCorpus

    loaded, tokenizer = load(model)
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
    typer.echo("Next: " + shlex.join(["kav", "export", "--model", str(model), *to]))


@command
def serve(
    path: Path = argument("Folder that `kav export` wrote."),
    name: str | None = option(
        "Of the model in addresses; default: the name of the folder."
    ),
    host: str = option(
        "Address to listen at; 0.0.0.0 for all, behind a proxy only.", "127.0.0.1"
    ),
    port: int = option("For HTTP.", 8080, min=1, max=65535),
    grpc_port: int = option("For gRPC.", 8081, min=1, max=65535),
    metrics_port: int = option("For Prometheus.", 8082, min=1, max=65535),
    max_requests: int = option("Requests that are translated together.", 64, min=1),
    max_wait: float = option(
        "Seconds that a request waits for others.", 0.01, check=check_positive
    ),
    timeout: float = option(
        "Seconds for a request to come, and to be answered; then it is an error.",
        30.0,
        check=check_positive,
    ),
) -> None:
    """Serve an exported model with MLServer, where TensorFlow Serving is not to be had.

    [bold]Example:[/bold] kav serve saved_models/multi30k
    """
    check_place("PATH", path, SAVED)
    ports = {port, grpc_port, metrics_port}
    if len(ports) < 3:
        raise ValueError(
            "--port, --grpc-port and --metrics-port must differ. Received: "
            f"{port}, {grpc_port}, {metrics_port}"
        )
    check_extra("Serving", "mlserver", ("mlserver",))
    import_tensorflow()
    folder = path.resolve()
    name = name or (folder.parent if folder.name.isdecimal() else folder).name
    # A request can make MLServer load the models in this folder: there are none.
    with tempfile.TemporaryDirectory() as nothing:
        places = {
            "host": host,
            "http_port": port,
            "grpc_port": grpc_port,
            "metrics_port": metrics_port,
            "model_repository_root": nothing,
            "metrics_dir": nothing,
        }
        batches = {"max_batch_size": max_requests, "max_batch_time": max_wait}
        asyncio.run(run(name, folder, places, batches, timeout))


async def run(
    name: str,
    folder: Path,
    places: dict[str, Any],
    batches: dict[str, Any],
    timeout: float,
) -> None:
    """Serves until a signal ends it."""
    from mlserver import MLServer
    from mlserver import ModelSettings
    from mlserver import Settings
    from mlserver.settings import ModelParameters

    from keras_attnvariants.backend.private import web_application
    from keras_attnvariants.serving.mlserver_requests import MAX_BYTES
    from keras_attnvariants.serving.mlserver_requests import protect
    from keras_attnvariants.serving.mlserver_runtime import TranslationRuntime

    # In this process: TensorFlow uses all cores by itself.
    usual = {"debug": False, "parallel_workers": 0}
    server = MLServer(Settings(**usual, grpc_max_message_length=MAX_BYTES, **places))
    protect(web_application(server), timeout)
    model = ModelSettings(
        name=name,
        implementation=TranslationRuntime,
        parameters=ModelParameters(uri=str(folder), extra={"timeout": timeout}),
        **batches,
    )
    await server.start([model])
