"""`kav demo`: a page that translates and shows what models attend to, by Gradio."""

import html
from collections.abc import Mapping
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING
from typing import Any

import typer

from keras_attnvariants.cli.commands import argument
from keras_attnvariants.cli.commands import command
from keras_attnvariants.cli.commands import option
from keras_attnvariants.cli.models import load
from keras_attnvariants.cli.models import short_names
from keras_attnvariants.cli.options import BEAM_SIZE
from keras_attnvariants.cli.options import IMPORTS
from keras_attnvariants.cli.options import import_modules
from keras_attnvariants.trained.names import DEFAULT_MODEL
from keras_attnvariants.utils.lines import split_lines
from keras_attnvariants.utils.machine import check_extra

if TYPE_CHECKING:
    import gradio as gr

    from keras_attnvariants.evaluation import AlignedTranslator

# Of one text; the rest is not translated, and the page says so.
MOST_CHARACTERS, MOST_SENTENCES = 5000, 20
ONE_ONLY = "none"
TITLE = "Translation models"
EXAMPLES = (
    "A man rides a horse along the beach.",
    "Two children play in the snow with their dog.",
    "The house that my brother sold was built by his uncle.",
)
# Pixels of a column; where two have no room they are one above the other.
NARROWEST = 300
# Fonts that the device has: nothing is loaded from elsewhere.
FONTS = {
    "font": ["system-ui", "sans-serif"],
    "font_mono": ["ui-monospace", "monospace"],
}


@command
def demo(
    models: list[str] | None = argument(
        f"Folders of runs or models, or names of models; default: {DEFAULT_MODEL}.",
        None,
    ),
    beam_size: int | None = BEAM_SIZE,
    n_best: int = option(
        "Translations of a sentence, at most the beam size.", 3, min=1
    ),
    host: str = option(
        "Address to listen at; 0.0.0.0 shows the page to everyone.", "127.0.0.1"
    ),
    port: int = option("To listen at.", 7860, min=1, max=65535),
    examples: list[str] | None = option(
        "Sentence that the page offers. May be repeated; default: three in English.",
        None,
        "--example",
    ),
    imports: list[str] | None = IMPORTS,
) -> None:
    """Show a page to translate with models, one or two side by side.

    [bold]Example:[/bold] kav demo kav/base/tatoeba-en-de runs/multi30k
    """
    folders = short_names(models or [DEFAULT_MODEL])
    check_extra("The page", "demo", ("gradio",))
    import_modules(imports)
    from keras_attnvariants.evaluation import AlignedTranslator

    loaded = {
        name: AlignedTranslator(*load(path), beam_size, n_best)
        for name, path in folders.items()
    }
    for model in loaded.values():
        # So that nobody waits for what is compiled.
        model.translate(".")
    typer.echo(f"Open http://{host}:{port} in a browser; Ctrl and C end it.")
    open_page(build_page(loaded, examples or EXAMPLES), host, port)


def build_page(
    models: "Mapping[str, AlignedTranslator]", examples: Sequence[str]
) -> "gr.Blocks":
    """The page: a text, one or two models, and what they make of it.

    Args:
        models: by the names that the page shows.
        examples: texts to choose from.
    """
    import gradio as gr

    names = list(models)
    others = [ONE_ONLY, *names]

    def show(text: str, first: str, second: str) -> tuple[str, str, Any]:
        other = "" if second == ONE_ONLY else column(second, models[second], text)
        return column(first, models[first], text), other, gr.update(visible=bool(other))

    with gr.Blocks(analytics_enabled=False, title=TITLE) as page:
        gr.Markdown(f"# {TITLE}")
        text = gr.Textbox(
            label="Text, one sentence per line",
            lines=3,
            max_length=MOST_CHARACTERS,
            autofocus=True,
            elem_id="text",
        )
        rows = [[example] for example in examples]
        offered = gr.Examples(rows, text, label="For example", elem_id="examples")
        dropdown = partial(gr.Dropdown, min_width=NARROWEST)
        with gr.Row():
            first = dropdown(names, value=names[0], label="Model", elem_id="first")
            second = dropdown(
                others,
                value=others[2] if len(names) > 1 else ONE_ONLY,
                label="Compare with",
                elem_id="second",
            )
        button = gr.Button("Translate", variant="primary", elem_id="translate")
        with gr.Row():
            with gr.Column(min_width=NARROWEST):
                left = gr.HTML(elem_id="left")
            with gr.Column(min_width=NARROWEST, visible=len(names) > 1) as side:
                right = gr.HTML(elem_id="right")
        asked, shown = [text, first, second], [left, right, side]
        gr.on([button.click, text.submit], show, asked, shown)
        offered.load_input_event.then(show, asked, shown)
    return page


def open_page(page: "gr.Blocks", host: str, port: int) -> None:
    """Serves the page until the process is ended.

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
        app_kwargs={"dependencies": [Depends(refuse_files)]},
        css=CSS,
        theme=gr.themes.Default(**FONTS),
        quiet=True,
    )


def column(name: str, model: "AlignedTranslator", text: str) -> str:
    """The translations of a text by one model, as HTML."""
    lines = [line for line in split_lines(text[:MOST_CHARACTERS]) if line.strip()]
    readings = [model.translate(line) for line in lines[:MOST_SENTENCES]]
    has_weights = any(x.weights.any() for found in readings for x in found.hypotheses)
    if not lines:
        notes = ["Type a sentence."]
    elif has_weights:
        notes = [
            "The table shows what the first translation attends to; point at a word of "
            "any other to see it there."
        ]
    else:
        notes = ["This model has no attention to the source."]
    if any(found.is_cut for found in readings):
        notes.append("A sentence was too long for the model and was cut.")
    if len(lines) > MOST_SENTENCES:
        notes.append(f"Only the first {MOST_SENTENCES} sentences are translated.")
    told = "".join(f"<p>{note}</p>" for note in notes)
    parts = "".join(found.html for found in readings)
    seconds = sum(found.seconds for found in readings)
    heading = f'<h3 class="kav-name">{html.escape(name)}</h3><p>{seconds:.2f} s</p>'
    return f"{heading}{parts}{told}"
