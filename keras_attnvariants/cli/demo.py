"""`kav demo`: a page that translates and shows what models attend to, by Gradio."""

import html
import itertools
import time
from collections.abc import Mapping
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any
from typing import NamedTuple

import typer

from keras_attnvariants.cli.commands import argument
from keras_attnvariants.cli.commands import command
from keras_attnvariants.cli.commands import option
from keras_attnvariants.cli.models import MODEL
from keras_attnvariants.cli.models import check_place
from keras_attnvariants.cli.models import load
from keras_attnvariants.cli.options import BEAM_SIZE
from keras_attnvariants.cli.options import IMPORTS
from keras_attnvariants.cli.options import import_modules
from keras_attnvariants.utils.lines import split_lines
from keras_attnvariants.utils.machine import check_extra

if TYPE_CHECKING:
    import gradio as gr

    from keras_attnvariants.evaluation.alignment_html import Hypothesis

# Source tokens of the programs that are compiled; a longer sentence is cut.
LENGTHS = (16, 32, 64, 128, 256)
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
_numbers = itertools.count()


@command
def demo(
    models: list[Path] = argument("Folders of runs or models."),
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

    [bold]Example:[/bold] kav demo runs/multi30k runs/other
    """
    for folder in models:
        check_place("--model", folder, MODEL)
    check_extra("The page", "demo", ("gradio",))
    import_modules(imports)
    loaded = {
        name: DemoModel(path, beam_size, n_best)
        for name, path in short_names(models).items()
    }
    for model in loaded.values():
        # So that nobody waits for what is compiled.
        model.read(".")
    typer.echo(f"Open http://{host}:{port} in a browser; Ctrl and C end it.")
    open_page(build_page(loaded, examples or EXAMPLES), host, port)


def short_names(paths: list[Path]) -> dict[str, Path]:
    """The paths by their last parts, or by the whole where that is not enough."""
    last = [path.resolve().name for path in paths]
    return {
        str(path) if last.count(name) > 1 else name: path
        for name, path in zip(last, paths, strict=True)
    }


class Reading(NamedTuple):
    """A sentence, its translations and how long they took.

    Attributes:
        source: the pieces of the sentence that the model read.
        hypotheses: best first; none for an empty sentence.
        seconds: for translating it, once the program for its length is compiled.
        is_cut: whether the model cannot read the whole sentence.
    """

    source: list[str]
    hypotheses: "list[Hypothesis]"
    seconds: float
    is_cut: bool


class DemoModel:
    """A trained model that shows what it attends to.

    Args:
        folder: folder of a run or of a model.
        beam_size: beam size of the search; `None` for that of the model.
        n_best: translations of a sentence, at most the beam size.

    Raises:
        OSError: there is no model.
        ValueError: a file of it is damaged.
    """

    def __init__(self, folder: Path, beam_size: int | None, n_best: int) -> None:
        self.model, self.tokenizer = load(folder)
        from keras_attnvariants import backend
        from keras_attnvariants.decoding import beam_search
        from keras_attnvariants.models import SearchSettings

        settings = SearchSettings.of(self.model, beam_size=beam_size)
        self.pieces = self.tokenizer.pieces
        self.lengths = sorted({min(n, self.model.max_length) for n in LENGTHS})
        self._compiled: set[int] = set()
        self._search = backend.jit(
            lambda ids: beam_search(
                self.model,
                ids,
                beam_size=settings.beam_size,
                n_best=min(n_best, settings.beam_size),
                return_alignments=True,
            ),
            xla=False,
        )

    def read(self, text: str) -> Reading:
        """Translates a sentence."""
        from keras import ops

        from keras_attnvariants.decoding.texts import pad_sequences
        from keras_attnvariants.evaluation.alignment_html import Hypothesis

        [all_ids] = self.tokenizer.encode([text])
        ids = all_ids[: self.lengths[-1]]
        source = self.tokenizer.split([text])[0][: len(ids)]
        if not ids:
            return Reading(source, [], 0.0, False)
        length = next(n for n in self.lengths if n >= len(ids))
        rows = pad_sequences([ids], 1, length, self.tokenizer.pad_id)
        if length not in self._compiled:
            self._search(ops.convert_to_tensor(rows))
            self._compiled.add(length)
        start = time.perf_counter()
        found = self._search(ops.convert_to_tensor(rows))
        tokens, scores, lengths, weights = (
            ops.convert_to_numpy(values)[0]
            for values in (found.ids, found.scores, found.lengths, found.alignments)
        )
        seconds = time.perf_counter() - start
        hypotheses = [
            Hypothesis(
                [self.pieces[i] for i in tokens[rank, : end - 1]],
                float(scores[rank]),
                weights[rank, : end - 1, : len(ids)],
            )
            for rank, end in enumerate(lengths)
            if end > 0
        ]
        return Reading(source, hypotheses, seconds, len(ids) < len(all_ids))


def build_page(models: Mapping[str, DemoModel], examples: Sequence[str]) -> "gr.Blocks":
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
        gr.Examples(rows, text, label="For example", elem_id="examples")
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

    from keras_attnvariants.evaluation.alignment_html import CSS

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


def column(name: str, model: DemoModel, text: str) -> str:
    """The translations of a text by one model, as HTML."""
    from keras_attnvariants.evaluation.alignment_html import alignment_html

    lines = [line for line in split_lines(text[:MOST_CHARACTERS]) if line.strip()]
    readings = [model.read(line) for line in lines[:MOST_SENTENCES]]
    parts = [
        alignment_html(found.source, found.hypotheses, f"kav{next(_numbers)}")
        for found in readings
    ]
    if not lines:
        notes = ["Type a sentence."]
    elif any(x.weights.any() for found in readings for x in found.hypotheses):
        notes = ["Point at a word of a translation to see what it attends to."]
    else:
        notes = ["This model has no attention to the source."]
    if any(found.is_cut for found in readings):
        notes.append("A sentence was too long for the model and was cut.")
    if len(lines) > MOST_SENTENCES:
        notes.append(f"Only the first {MOST_SENTENCES} sentences are translated.")
    told = "".join(f"<p>{note}</p>" for note in notes)
    seconds = sum(found.seconds for found in readings)
    heading = f'<h3 class="kav-name">{html.escape(name)}</h3><p>{seconds:.2f} s</p>'
    return f"{heading}{''.join(parts)}{told}"
