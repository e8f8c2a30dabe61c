"""`kav export` and `kav shortlist`: a SavedModel, and the tokens it chooses among."""

import json
import shlex
from collections.abc import Iterable
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated
from typing import Any

import typer

from keras_attnvariants.cli.catalogue import CorpusOptions
from keras_attnvariants.cli.commands import command
from keras_attnvariants.cli.models import check_folders
from keras_attnvariants.cli.models import load
from keras_attnvariants.cli.options import Imports
from keras_attnvariants.cli.options import RequiredModel
from keras_attnvariants.cli.options import SearchOptions
from keras_attnvariants.cli.options import check_output_file
from keras_attnvariants.cli.options import check_output_folder
from keras_attnvariants.cli.options import import_modules


class ExportPrecision(StrEnum):
    """What an exported model computes in, and how its weights are stored."""

    AUTO = "auto"
    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"
    INT8 = "int8"
    INT8_WEIGHTS = "int8-weights"


ExportPrecisionOption = Annotated[
    ExportPrecision,
    typer.Option(
        "--precision",
        help="auto: float32 or bfloat16, whichever is faster on this machine. int8: "
        "multiplies 8-bit integers, the fastest, on servers with AVX512-VNNI or "
        "AVX-VNNI. int8-weights: stores them only, the smallest, on any server. In "
        "float32 a translation does not depend on the others of its request.",
    ),
]
Output = Annotated[
    Path,
    typer.Option(
        help="Folder of all versions, such as saved_models/en-de.", show_default=False
    ),
]
Version = Annotated[
    int | None,
    typer.Option(
        help="Default: one more than the newest in the folder.",
        min=1,
        show_default=False,
    ),
]
IdsOnly = Annotated[
    bool,
    typer.Option(
        "--ids-only", help="Token ids in and out: loads without TensorFlow Text."
    ),
]

Deployment = Annotated[
    Path | None,
    typer.Option(
        help="Folder for what it takes to run TensorFlow Serving: Compose and "
        "Kubernetes files, model configuration, a proxy with limits. Files that exist "
        "there are kept.",
        show_default=False,
    ),
]
SignatureNames = Annotated[
    list[str] | None,
    typer.Option(
        "--signature",
        help="A signature to write besides serving_default; once for each. Default: "
        "all but translate_with and sample.",
        show_default=False,
    ),
]


@dataclass(frozen=True, kw_only=True)
class GraphOptions:
    """Limits of an exported graph."""

    n_best: Annotated[
        int | None,
        typer.Option(
            help="Translations that the signature nbest returns; default: the beam "
            "size.",
            min=1,
            show_default=False,
        ),
    ] = None
    max_batch: Annotated[
        int, typer.Option(help="Sentences in a request; more are refused.", min=1)
    ] = 64
    max_characters: Annotated[
        int,
        typer.Option(
            help="Characters of a text; the rest is cut off and reported.", min=1
        ),
    ] = 4096
    max_tokens: Annotated[
        int | None,
        typer.Option(
            help="Subwords of a text, likewise; default: 256, or the model's limit.",
            min=1,
            show_default=False,
        ),
    ] = None
    shortlist: Annotated[
        Path | None,
        typer.Option(
            "--shortlist",
            help="File of kav.data.Shortlist: which tokens translations may have, by "
            "those of their source.",
            show_default=False,
        ),
    ] = None
    shortlist_width: Annotated[
        int | None,
        typer.Option(
            help="Tokens that each sentence has of the shortlist; default: one in 16 "
            "of the vocabulary, but at least 500.",
            min=1,
            show_default=False,
        ),
    ] = None

    def load(self) -> dict[str, Any]:
        """The same as arguments of `kav.serving.export`, the shortlist read.

        Raises:
            ValueError, OSError: its file cannot be read, or holds none.
        """
        from keras_attnvariants.data import Shortlist

        path = self.shortlist
        return {**vars(self), "shortlist": path and Shortlist.load(path)}


@command
def export(
    *,
    model: RequiredModel,
    output: Output,
    version: Version = None,
    search: SearchOptions,
    precision: ExportPrecisionOption = ExportPrecision.AUTO,
    graph: GraphOptions,
    ids_only: IdsOnly = False,
    deployment: Deployment = None,
    signatures: SignatureNames = None,
    imports: Imports = None,
) -> None:
    """Export a model as a SavedModel for TensorFlow Serving.

    Tokenizer, beam search and limits are part of it; serving it needs no Python.

    [bold]Example:[/bold] kav export --model runs/multi30k
    --output saved_models/multi30k
    """
    check_folders(model, None)
    check_output_folder("--output", output)
    if deployment is not None:
        check_output_folder("--deployment", deployment)
    import_modules(imports)
    import keras_attnvariants as kav
    from keras_attnvariants.serving.export import new_version

    new_version(output, version)
    options = search.given() | graph.load()
    loaded, tokenizer = load(model)
    path = kav.serving.export(
        loaded,
        None if ids_only else tokenizer,
        output,
        precision=precision.value,
        signatures=signatures or None,
        version=version,
        **options,
    )
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
    steps = info["operators_per_step"]
    typer.echo(f"{path} ({size / 1e6:.1f} MB, {steps} operators per decoding step)")
    computed = info["precision"]
    stored = ", 8-bit integers" if computed["quantization"] else ""
    typer.echo(f"  computes in {computed['dtype']}{stored}")
    for name, signature in info["signatures"].items():
        typer.echo(f"  {name}: {signature['doc']}")


File = Annotated[
    Path,
    typer.Option(help="File to write, such as shortlist.npz."),
]
Candidates = Annotated[
    int, typer.Option(help="Likely translations of each token, at most.", min=1)
]
Common = Annotated[
    int,
    typer.Option(help="Frequent tokens that every translation may have.", min=0),
]


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
    model: RequiredModel,
    corpus: CorpusOptions,
    output: File,
    candidates: Candidates = 50,
    common: Common = 200,
    imports: Imports = None,
) -> None:
    """Learn which tokens translations may have, by those of their sources.

    A lexical model is estimated from the training sentences of a corpus, in the tokens
    of a trained model. `kav export --shortlist` makes the exported model faster by it.

    [bold]Example:[/bold] kav shortlist --model runs/multi30k
    --data multi30k --source en --target de --output shortlist.npz
    """
    check_folders(model, None)
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
