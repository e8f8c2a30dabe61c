"""`kav export`: a SavedModel for TensorFlow Serving."""

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Annotated

import typer

from keras_attnvariants.cli.checks import check_output_folder
from keras_attnvariants.cli.errors import clear_errors
from keras_attnvariants.cli.errors import import_tensorflow
from keras_attnvariants.cli.models import check_folders
from keras_attnvariants.cli.models import in_precision
from keras_attnvariants.cli.models import load
from keras_attnvariants.cli.options import BeamSize
from keras_attnvariants.cli.options import LengthPenalty
from keras_attnvariants.cli.options import Precision

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
        "is stored, and computed in bfloat16; auto: what is fastest on this machine.",
        show_default=False,
    ),
]
RequiredModel = Annotated[
    Path,
    typer.Option(
        "--model",
        "--run",
        help="Folder of a run, of which the better model is taken (best validation "
        "or averaged weights), or a model folder.",
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
NBest = Annotated[
    int | None,
    typer.Option(
        help="Translations that the signature nbest returns; default: the beam size.",
        min=1,
        show_default=False,
    ),
]
MaxBatch = Annotated[
    int, typer.Option(help="Sentences in a request; more are refused.", min=1)
]
MaxCharacters = Annotated[
    int,
    typer.Option(help="Characters of a text; the rest is cut off and reported.", min=1),
]
MaxTokens = Annotated[
    int | None,
    typer.Option(
        help="Subwords of a text, likewise; default: 256, or the model's limit.",
        min=1,
        show_default=False,
    ),
]
Exact = Annotated[
    bool,
    typer.Option(
        "--exact",
        help="Compute in float32, so that a translation does not depend on the other "
        "sentences of its request.",
    ),
]
OneDnn = Annotated[
    bool,
    typer.Option(
        "--onednn",
        help="With int8: multiply 8-bit integers by oneDNN, which is faster, but needs "
        "a server for Linux on x86-64 and a processor with VNNI.",
    ),
]
Packed = Annotated[
    bool,
    typer.Option(
        "--packed",
        help="Keep the decoder's weights as constants in the graph, which is then "
        "larger: faster on x86 processors, above all for few sentences.",
    ),
]
ShortlistFile = Annotated[
    Path | None,
    typer.Option(
        "--shortlist",
        help="File of kav.data.Shortlist: which tokens translations may have, by those "
        "of their source.",
        show_default=False,
    ),
]
ShortlistWidth = Annotated[
    int, typer.Option(help="Tokens that each sentence has of the shortlist.", min=1)
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


def export(
    model: RequiredModel,
    output: Output,
    version: Version = None,
    beam_size: BeamSize = None,
    length_penalty: LengthPenalty = None,
    precision: ExportPrecisionOption = None,
    n_best: NBest = None,
    max_batch: MaxBatch = 64,
    max_characters: MaxCharacters = 4096,
    max_tokens: MaxTokens = None,
    exact: Exact = False,
    onednn: OneDnn = False,
    packed: Packed = False,
    shortlist: ShortlistFile = None,
    shortlist_width: ShortlistWidth = 2_000,
    ids_only: IdsOnly = False,
    deployment: Deployment = None,
    signatures: SignatureNames = None,
) -> None:
    """Export a model as a SavedModel for TensorFlow Serving.

    Tokenizer, beam search and limits are part of it; serving it needs no Python.

    [bold]Example:[/bold] kav export --model runs/multi30k
    --output saved_models/multi30k
    """
    with clear_errors():
        check_folders(model, None)
        check_output_folder("--output", output)
        if deployment is not None:
            check_output_folder("--deployment", deployment)
        import_tensorflow()
        import keras_attnvariants as kav
        from keras_attnvariants.serving.export import new_version

        new_version(output, version)
        tokens = None if shortlist is None else kav.data.Shortlist.load(shortlist)
        loaded, tokenizer = load(model)
        if precision is not None:
            loaded = exported_in(loaded, precision)
        path = kav.serving.export(
            loaded,
            None if ids_only else tokenizer,
            output,
            beam_size=beam_size,
            length_penalty=length_penalty,
            n_best=n_best,
            max_batch=max_batch,
            max_characters=max_characters,
            max_tokens=max_tokens,
            exact=exact,
            onednn=onednn,
            packed=packed,
            shortlist=tokens,
            shortlist_width=shortlist_width,
            signatures=signatures or None,
            version=version,
        )
        info = json.loads((path / "assets.extra" / "model_info.json").read_text())
        size = sum(f.stat().st_size for f in path.rglob("*") if f.is_file())
        steps = info["operators_per_step"]
        typer.echo(f"{path} ({size / 1e6:.1f} MB, {steps} operators per decoding step)")
        for name, signature in info["signatures"].items():
            typer.echo(f"  {name}: {signature['doc']}")
        if deployment is not None:
            for file in kav.serving.write_deployment(path, deployment):
                typer.echo(file)
        if not ids_only:
            typer.echo(f"Next: kav translate --saved-model {output} 'A sentence.'")


def exported_in(model: "keras.Model", precision: ExportPrecision) -> "keras.Model":
    """The model in the precision that was asked for; says what `auto` takes."""
    from keras_attnvariants.serving.fastest import fastest_precision

    if precision == ExportPrecision.AUTO:
        precision = ExportPrecision(fastest_precision())
        typer.echo(f"Precision: {precision}, the fastest on this machine")
    if precision == ExportPrecision.INT8:
        model = in_precision(model, Precision.BFLOAT16)
    return in_precision(model, Precision(precision.value))
