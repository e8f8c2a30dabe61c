"""`kav export`: a SavedModel for TensorFlow Serving."""

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Annotated
from typing import Any

import typer

from keras_attnvariants.cli.commands import command
from keras_attnvariants.cli.export_options import GraphOptions
from keras_attnvariants.cli.models import check_folders
from keras_attnvariants.cli.models import in_precision
from keras_attnvariants.cli.models import load
from keras_attnvariants.cli.options import Precision
from keras_attnvariants.cli.options import RequiredModel
from keras_attnvariants.cli.options import SearchOptions
from keras_attnvariants.cli.options import check_output_folder
from keras_attnvariants.utils.importing import import_tensorflow

if TYPE_CHECKING:
    import keras


class ExportPrecision(StrEnum):
    """What an exported model computes in, and how its weights are stored."""

    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"
    INT8 = "int8"
    AUTO = "auto"


ExportPrecisionOption = Annotated[
    ExportPrecision | None,
    typer.Option(
        "--precision",
        help="What the model computes in, and stores; default: as in training. int8 "
        "is stored, and computed in bfloat16 unless --onednn is given; auto: what is "
        "fastest on this machine, --onednn included.",
        show_default=False,
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


@command
def export(
    *,
    model: RequiredModel,
    output: Output,
    version: Version = None,
    search: SearchOptions,
    precision: ExportPrecisionOption = None,
    graph: GraphOptions,
    ids_only: IdsOnly = False,
    deployment: Deployment = None,
    signatures: SignatureNames = None,
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
    import_tensorflow()
    import keras_attnvariants as kav
    from keras_attnvariants.serving.export import new_version

    new_version(output, version)
    options = search.given() | graph.load()
    loaded, tokenizer = load(model)
    if precision == ExportPrecision.AUTO:
        precision, options = fastest(options)
    if precision is not None:
        loaded = exported_in(loaded, precision)
    path = kav.serving.export(
        loaded,
        None if ids_only else tokenizer,
        output,
        signatures=signatures or None,
        version=version,
        **options,
    )
    show(path)
    if deployment is not None:
        for file in kav.serving.write_deployment(path, deployment):
            typer.echo(file)
    if not ids_only:
        typer.echo(f"Next: kav translate --saved-model {output} 'A sentence.'")


def show(path: Path) -> None:
    """Prints what was written: its size, and its signatures."""
    info = json.loads((path / "assets.extra" / "model_info.json").read_text())
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    steps = info["operators_per_step"]
    typer.echo(f"{path} ({size / 1e6:.1f} MB, {steps} operators per decoding step)")
    for name, signature in info["signatures"].items():
        typer.echo(f"  {name}: {signature['doc']}")


def fastest(options: dict[str, Any]) -> tuple[ExportPrecision, dict[str, Any]]:
    """The precision that is fastest here, and options that go with it; says which.

    Raises:
        ValueError: it is asked to use `--onednn`, which is its choice.
    """
    from keras_attnvariants.serving.fastest import fastest_precision

    if options["onednn"]:
        raise ValueError("--precision auto decides on --onednn by itself: leave it out")
    if options["exact"]:
        typer.echo("Precision: float32, because of --exact")
        return ExportPrecision.FLOAT32, options
    precision = ExportPrecision(fastest_precision())
    typer.echo(f"Precision: {precision}, the fastest on this machine")
    if precision == ExportPrecision.INT8:
        typer.echo(
            "As with --onednn: servers need Linux on x86-64 and a processor with VNNI. "
            "--precision bfloat16 needs neither."
        )
        if options["packed"]:
            typer.echo("Without --packed: --onednn packs its matrices by itself.")
        options = options | {"onednn": True, "packed": False}
    return precision, options


def exported_in(model: "keras.Model", precision: ExportPrecision) -> "keras.Model":
    """The model in the precision that was asked for."""
    if precision == ExportPrecision.INT8:
        model = in_precision(model, Precision.BFLOAT16)
    return in_precision(model, Precision(precision.value))
