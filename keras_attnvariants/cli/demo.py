"""`kav demo`: a Gradio page on which models run and show what they attend to."""

import html
from collections.abc import Mapping
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

import typer

from keras_attnvariants.cli.commands import argument
from keras_attnvariants.cli.commands import command
from keras_attnvariants.cli.commands import option
from keras_attnvariants.cli.models import load
from keras_attnvariants.cli.models import same_task
from keras_attnvariants.cli.models import short_names
from keras_attnvariants.cli.options import BEAM_SIZE
from keras_attnvariants.cli.options import IMPORTS
from keras_attnvariants.cli.options import import_modules
from keras_attnvariants.trained.names import DEFAULT_MODEL
from keras_attnvariants.trained.names import read_card
from keras_attnvariants.utils.lines import split_lines
from keras_attnvariants.utils.machine import check_extra

if TYPE_CHECKING:
    import gradio as gr

    from keras_attnvariants.data.tasks import Task
    from keras_attnvariants.evaluation import AlignedTranslator

# Limits of one text; the page says that the rest is left out.
MAX_CHARACTERS, MAX_SENTENCES = 5000, 20
LARGEST_RECORDING = "20mb"
ONE_ONLY = "none"
# Least width of a column in pixels; without room for two, they are stacked.
NARROWEST = 300


@command
def demo(
    models: list[str] | None = argument(
        f"Folders of runs or models, or names of models; default: {DEFAULT_MODEL}.",
        None,
    ),
    beam_size: int | None = BEAM_SIZE,
    n_best: int = option(
        "Translations, summaries or transcripts of each source, at most the beam size.",
        3,
        min=1,
    ),
    host: str = option(
        "Address to listen at; 0.0.0.0 shows the page to everyone.", "127.0.0.1"
    ),
    port: int = option("Port to listen at.", 7860, min=1, max=65535),
    examples: list[str] | None = option(
        "Sentence or recording that the page offers. May be repeated; default: three "
        "from the card of the first model, if it has one.",
        None,
        "--example",
    ),
    imports: list[str] | None = IMPORTS,
) -> None:
    """Show a page on which to use models, one or two side by side.

    They translate, summarise or transcribe; recordings are uploaded or spoken.

    [bold]Example:[/bold] kav demo kav/base/tatoeba-en-de runs/multi30k
    """
    folders = short_names(models or [DEFAULT_MODEL])
    task = same_task(folders)
    check_extra("The page", "demo", ("gradio",))
    import_modules(imports)
    from keras_attnvariants.evaluation import AlignedTranslator

    loaded = {
        name: AlignedTranslator(*load(path), beam_size, n_best)
        for name, path in folders.items()
    }
    for model in loaded.values() if task.reads_text else ():
        # So that nobody waits for compilation.
        model.translate(".")
    typer.echo(f"Open http://{host}:{port} in a browser; Ctrl-C ends it.")
    offered = examples or examples_of(next(iter(folders.values())))
    open_page(build_page(loaded, offered, task), host, port, not task.reads_text)


def examples_of(folder: Path) -> list[str]:
    """Three sources from the card of a model: a good translation, a fair and a bad one.

    A model without a card has none.
    """
    examples = read_card(folder).get("examples", [])
    return [example["source"] for example in examples[::4]]


def build_page(
    models: "Mapping[str, AlignedTranslator]", examples: Sequence[str], task: "Task"
) -> "gr.Blocks":
    """The page: a text or recording, one or two models, and their outputs.

    Args:
        models: models by the names that the page shows.
        examples: texts, or paths of recordings, to choose from.
        task: task of the models.
    """
    import gradio as gr

    names = list(models)

    def show(source: str | None, first: str, second: str) -> tuple[str, str, Any]:
        sources = sources_of(source or "", task)
        here, other = (
            model_column(name, models[name], sources, task) if name in models else ""
            for name in (first, second)
        )
        return here, other, gr.update(visible=bool(other))

    title = f"{task.name.capitalize()} models"
    with gr.Blocks(analytics_enabled=False, title=title) as page:
        gr.Markdown(f"# {title}")
        if task.reads_text:
            source = gr.Textbox(
                label=f"Text, one {task.source} per line",
                lines=3,
                max_length=MAX_CHARACTERS,
                autofocus=True,
                elem_id="text",
            )
        else:
            source = gr.Audio(label="Recording", type="filepath", elem_id="recording")
        dropdown = partial(gr.Dropdown, min_width=NARROWEST)
        with gr.Row():
            first = dropdown(names, value=names[0], label="Model", elem_id="first")
            other = names[1] if len(names) > 1 else ONE_ONLY
            second = dropdown(
                [ONE_ONLY, *names], value=other, label="Compare with", elem_id="second"
            )
        label = task.output.capitalize()
        button = gr.Button(label, variant="primary", elem_id="translate")
        with gr.Row():
            with gr.Column(min_width=NARROWEST):
                left = gr.HTML(elem_id="left")
            with gr.Column(min_width=NARROWEST, visible=len(names) > 1) as side:
                right = gr.HTML(elem_id="right")
        asked, shown = [source, first, second], [left, right, side]
        entered = source.submit if task.reads_text else source.stop_recording
        gr.on([button.click, entered], show, asked, shown)
        if rows := [[example] for example in examples]:
            offered = gr.Examples(rows, source, label="For example", elem_id="examples")
            offered.load_input_event.then(show, asked, shown)
    return page


def open_page(page: "gr.Blocks", host: str, port: int, takes_files: bool) -> None:
    """Serves the page until the process ends, with or without uploads of recordings.

    Raises:
        OSError: the port is not free.
    """
    import gradio as gr
    from fastapi import Depends
    from fastapi import HTTPException
    from fastapi import Request

    from keras_attnvariants.evaluation.aligned_translations import CSS

    def refuse_files(request: Request) -> None:
        if "multipart/" in request.headers.get("content-type", "").lower():
            raise HTTPException(413, "This page takes no files.")

    page.launch(
        server_name=host,
        server_port=port,
        share=False,
        run_history=False,
        ssr_mode=False,
        mcp_server=False,
        enable_monitoring=False,
        footer_links=[],
        app_kwargs={} if takes_files else {"dependencies": [Depends(refuse_files)]},
        max_file_size=LARGEST_RECORDING,
        css=CSS,
        # Fonts of the device: nothing is loaded from elsewhere.
        theme=gr.themes.Default(
            font=["system-ui", "sans-serif"], font_mono=["ui-monospace", "monospace"]
        ),
        quiet=True,
    )


def sources_of(source: str, task: "Task") -> list[str]:
    """The lines of a text that are not empty, or the path of a recording."""
    if task.reads_text:
        lines = split_lines(source[:MAX_CHARACTERS])
        return [line for line in lines if line.strip()]
    return [source] if source else []


def model_column(
    name: str, model: "AlignedTranslator", lines: Sequence[str], task: "Task"
) -> str:
    """The outputs of one model, as HTML."""
    try:
        readings = [model.translate(line) for line in lines[:MAX_SENTENCES]]
    except ValueError:
        if task.reads_text:
            raise
        # The upload is not a recording.
        return "<p>This is not a recording.</p>"
    has_weights = any(x.weights.any() for found in readings for x in found.hypotheses)
    if not lines:
        notes = [f"Give a {task.source}."]
    elif has_weights:
        notes = [
            f"The table shows what the first {task.output} attends to; point at a word "
            "of any other to see it there."
        ]
        notes += [] if task.reads_text else ["Numbers are seconds."]
    else:
        notes = ["This model has no attention to the source."]
    if any(found.is_cut for found in readings):
        notes.append(f"A {task.source} was too long for the model and was cut.")
    if len(lines) > MAX_SENTENCES:
        notes.append(f"Only the first {MAX_SENTENCES} {task.source}s are read.")
    listed = "".join(f"<p>{note}</p>" for note in notes)
    parts = "".join(found.html for found in readings)
    seconds = sum(found.seconds for found in readings)
    heading = f'<h3 class="kav-name">{html.escape(name)}</h3><p>{seconds:.2f} s</p>'
    return f"{heading}{parts}{listed}"
