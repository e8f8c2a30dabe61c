"""The page of `kav demo`, by Gradio.

Needs Gradio, which only those who show a model have to install.
"""

import html
import itertools
from collections.abc import Mapping
from typing import Any

import gradio as gr

from keras_attnvariants.cli.demo_models import DemoModel
from keras_attnvariants.evaluation.alignment_html import CSS
from keras_attnvariants.evaluation.alignment_html import alignment_html
from keras_attnvariants.utils.lines import split_lines

# Of one text; the rest is not translated, and the page says so.
MOST_CHARACTERS, MOST_SENTENCES = 5000, 20
ONE_ONLY = "none"
# Pixels of a column; where two have no room they are one above the other.
NARROWEST = 300
# Fonts that the device has: nothing is loaded from elsewhere.
FONTS = {
    "font": ["system-ui", "sans-serif"],
    "font_mono": ["ui-monospace", "monospace"],
}


def build_page(models: Mapping[str, DemoModel]) -> gr.Blocks:
    """The page: a text, one or two models, and what they make of it.

    Args:
        models: by the names that the page shows.
    """
    names = list(models)
    others = [ONE_ONLY, *names]

    def show(text: str, first: str, second: str) -> tuple[str, str, Any]:
        other = "" if second == ONE_ONLY else column(second, models[second], text)
        return column(first, models[first], text), other, gr.update(visible=bool(other))

    with gr.Blocks(analytics_enabled=False, title="Translation models") as page:
        text = gr.Textbox(
            label="Text, one sentence per line",
            lines=3,
            max_length=MOST_CHARACTERS,
            autofocus=True,
            elem_id="text",
        )
        with gr.Row():
            first = gr.Dropdown(
                names,
                value=names[0],
                label="Model",
                elem_id="first",
                min_width=NARROWEST,
            )
            second = gr.Dropdown(
                others,
                value=others[2] if len(names) > 1 else ONE_ONLY,
                label="Compare with",
                elem_id="second",
                min_width=NARROWEST,
            )
        button = gr.Button("Translate", variant="primary", elem_id="translate")
        with gr.Row():
            with gr.Column(min_width=NARROWEST):
                left = gr.HTML(elem_id="left")
            with gr.Column(min_width=NARROWEST, visible=len(names) > 1) as side:
                right = gr.HTML(elem_id="right")
        gr.on(
            [button.click, text.submit],
            show,
            [text, first, second],
            [left, right, side],
        )
    return page


def open_page(page: gr.Blocks, host: str, port: int) -> None:
    """Serves the page until the process is ended.

    Args:
        page: what `build_page` returned.
        host: address to listen at.
        port: to listen at.

    Raises:
        OSError: the port is not free.
    """
    page.launch(
        server_name=host,
        server_port=port,
        share=False,
        run_history=False,
        ssr_mode=False,
        mcp_server=False,
        enable_monitoring=False,
        footer_links=[],
        css=CSS,
        theme=gr.themes.Default(**FONTS),
        quiet=True,
    )


_numbers = itertools.count()


def column(name: str, model: DemoModel, text: str) -> str:
    """What one model makes of a text, as HTML."""
    lines = [line for line in split_lines(text[:MOST_CHARACTERS]) if line.strip()]
    parts, seconds, has_weights = [], 0.0, False
    notes = set()
    for line in lines[:MOST_SENTENCES]:
        reading = model.read(line)
        seconds += reading.seconds
        identifier = f"kav{next(_numbers)}"
        parts.append(alignment_html(reading.source, reading.hypotheses, identifier))
        has_weights |= any(found.weights.any() for found in reading.hypotheses)
        if reading.is_cut:
            notes.add("A sentence was too long for the model and was cut.")
    if len(lines) > MOST_SENTENCES:
        notes.add(f"Only the first {MOST_SENTENCES} sentences are translated.")
    if not lines:
        notes.add("Type a sentence.")
    elif not has_weights:
        notes.add("This model has no attention to the source.")
    else:
        notes.add("Point at a word of a translation to see what it attends to.")
    told = "".join(f"<p>{note}</p>" for note in sorted(notes))
    heading = f'<h3 class="kav-name">{html.escape(name)}</h3><p>{seconds:.2f} s</p>'
    return f"{heading}{''.join(parts)}{told}"
