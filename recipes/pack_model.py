"""Pack the model of a run for others, with a card of measured figures.

    python recipes/pack_model.py runs/base kav/base/tatoeba-en-de \\
        --data tatoeba-de-en --source en --target de \\
        --about recipes/tatoeba-de-en.toml

`train_models.py` packs the models of the package this way.
"""

import dataclasses
import shlex
import tempfile
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

import typer
from model_cards import Card
from model_cards import Data
from model_cards import Score
from model_cards import Training

from keras_attnvariants.cli.catalogue import CorpusOptions
from keras_attnvariants.cli.commands import Command
from keras_attnvariants.cli.commands import argument
from keras_attnvariants.cli.commands import command
from keras_attnvariants.cli.commands import option
from keras_attnvariants.cli.models import RUN
from keras_attnvariants.cli.models import check_place
from keras_attnvariants.cli.models import load
from keras_attnvariants.cli.models import translator_of
from keras_attnvariants.cli.options import check_output_folder
from keras_attnvariants.cli.train import RunOptions
from keras_attnvariants.cli.train import option_names
from keras_attnvariants.trained.names import CARD
from keras_attnvariants.utils.folders import MANIFEST
from keras_attnvariants.utils.folders import new_folder
from keras_attnvariants.utils.importing import import_tensorflow

if TYPE_CHECKING:
    from keras_attnvariants import Translator
    from keras_attnvariants.data import Corpus
    from keras_attnvariants.presets import Preset


PAGE = "README.md"
WEIGHTS = {
    "averaged": "the mean of those of the last validations",
    "best": "those of the best validation, better than the mean of the last",
}
TEMPLATE = Path(__file__).with_name("card.md")


@dataclass(frozen=True)
class About:
    """Facts about a model that a person must supply, in a TOML file.

    Attributes:
        license: the terms of the data, by their Hugging Face name with spaces, such as
            `"CC BY 2.0"`.
        attribution: whom to credit, and where the data comes from.
        limits: what the model is not for.
        languages: names of languages by code.
        examples: sentences by code of their language, each with its translation.
    """

    license: str
    attribution: str
    limits: list[str]
    languages: dict[str, str]
    examples: list[dict[str, str]]

    @classmethod
    def read(cls, path: Path) -> "About":
        """The contents of a file.

        Raises:
            ValueError: its contents are not valid.
            OSError: it cannot be read.
        """
        from pydantic import TypeAdapter

        try:
            values = tomllib.loads(path.read_text("utf-8"))
            return TypeAdapter(cls).validate_python(values)
        except ValueError as error:
            raise ValueError(f"{error}. Received: {path}") from error


@command
def pack(
    *,
    run: Path = argument("Folder of a run of `kav train`."),
    name: str = argument("Name of the model, such as kav/base/tatoeba-en-de."),
    corpus: CorpusOptions,
    about: Path = option(
        "TOML file with licence, attribution, limits, names of languages and examples; "
        "recipes/tatoeba-de-en.toml is one.",
        ...,
    ),
    output: Path | None = option("Folder to write; default: models/NAME."),
) -> None:
    """Pack the model of a run for others: 8-bit weights, and a card with figures.

    Packs the model of the run that `kav evaluate` scores. The packed model and the same
    model in float32 translate the test set, in one thread each. card.json contains the
    measurements, README.md a page about them.

    [bold]Example:[/bold] python recipes/pack_model.py runs/base
    kav/base/tatoeba-en-de --data tatoeba-de-en --source en --target de
    --about recipes/tatoeba-de-en.toml
    """
    check_place("RUN", run, RUN)
    folder = output or Path("models") / name
    check_output_folder("--output", folder)
    said = About.read(about)
    import_tensorflow()
    from card_figures import measured

    from keras_attnvariants.data import save_model

    loaded = corpus.load()
    data, samples = data_of(loaded, said), examples_of(said, loaded)
    model, tokenizer = load(run, "float32")
    preset, training = training_of(run, loaded)
    with tempfile.TemporaryDirectory() as place:
        plain = save_model(model, Path(place) / "float32", tokenizer)
        packed = save_model(model, Path(place) / "packed", tokenizer, packed=True)
        test = loaded.read_lines("test")
        card = Card(
            name=name,
            source=corpus.source,
            target=corpus.target,
            languages=said.languages,
            license=said.license,
            limits=said.limits,
            parameters=model.count_params(),
            bytes=sum(file.stat().st_size for file in packed.iterdir()),
            search=search_of(translator_of(model, tokenizer)),
            data=data,
            training=training,
            **described(preset),
            **measured(packed, plain, test, samples, tokenizer),
        )
        write_with_card(packed, card, folder)
    for score in card.scores:
        typer.echo(f"  {score.name:5} {score.packed:6.2f}, in float32 {score.float32}")
    typer.echo(f"{folder} ({card.bytes / 1e6:.1f} MB)")
    typer.echo(f"Next: kav translate --model {shlex.quote(str(folder))} 'A sentence.'")


def search_of(translator: "Translator") -> dict[str, float]:
    """The search settings of `kav translate`."""
    from keras_attnvariants.models import SearchSettings

    settings = SearchSettings.of(translator.model)
    return {**settings.to_dict(), "batch_size": max(translator.batch_sizes)}


def described(preset: "Preset") -> dict[str, Any]:
    """The fields of a card that come from the preset."""
    from keras_attnvariants.presets import get
    from keras_attnvariants.presets.kav import PUBLISHED

    after = PUBLISHED[preset.variant] if preset.name.startswith("kav/") else ""
    options = preset.options.items()
    return {
        "preset": preset.name,
        "variant": preset.variant,
        "after": after,
        "paper": (get(after) if after else preset).paper,
        "attention": sorted(preset.attention),
        # Initializers of attention are not sizes.
        "sizes": {key: value for key, value in options if not isinstance(value, dict)},
    }


def data_of(corpus: "Corpus", about: About) -> Data:
    """The corpus as the card describes it.

    Raises:
        ValueError: it has no split "test", or test sentences are training sentences.
    """
    import numpy as np

    from keras_attnvariants.utils.caches import remembered_entry

    training, test = corpus.read_lines("train"), corpus.read_lines("test")
    known = [
        len({*seen} & {*held_out})
        for seen, held_out in zip(training, test, strict=True)
    ]
    if any(known):
        raise ValueError(
            "The test set must not have sentences of the training data, or its scores "
            f"would say nothing. Received: {known[0]} sources and {known[1]} targets "
            f"that are in both, of {corpus.name}"
        )
    words = [len(source.split()) for source in training[0]]
    return Data(
        corpus.name,
        about.attribution,
        {file.name: remembered_entry(file)["sha256"] for file in sorted(corpus.inputs)},
        {split: report.written for split, report in corpus.reports.items()},
        round(float(np.mean(words)), 1),
        int(np.percentile(words, 99)),
        *known,
    )


def examples_of(about: About, corpus: "Corpus") -> list[tuple[str, str]]:
    """The examples in the languages of a corpus: sources and references.

    Raises:
        ValueError: there are none, or one is a sentence of the corpus.
    """
    languages = {corpus.source_language, corpus.target_language}
    found = [
        (pair[corpus.source_language], pair[corpus.target_language])
        for pair in about.examples
        if languages <= pair.keys()
    ]
    if not found:
        raise ValueError(
            f"--about must have [[examples]]. Received: none in {sorted(languages)}"
        )
    given = {text for pair in found for text in pair}
    for split in corpus.splits:
        for texts in corpus.read_lines(split):
            if known := given.intersection(texts):
                raise ValueError(
                    "The examples of --about must be sentences of your own. Received: "
                    f"{sorted(known)[0]!r}, which is in {split!r} of the corpus"
                )
    return found


def training_of(run: Path, corpus: "Corpus") -> tuple["Preset", Training]:
    """The preset of a run, and how it was trained.

    The command has all settings that differ from the preset's: it would resume the run.

    Raises:
        ValueError: the run is not of a preset, or was trained on another corpus.
    """
    from keras_attnvariants.presets import get
    from keras_attnvariants.training.model_training import build_run
    from keras_attnvariants.training.progress import read_log
    from keras_attnvariants.training.run_models import LOG
    from keras_attnvariants.training.run_models import better_model
    from keras_attnvariants.training.run_settings import MACHINE
    from keras_attnvariants.training.run_settings import describe_run
    from keras_attnvariants.training.run_settings import differences_of
    from keras_attnvariants.training.run_settings import read_settings

    saved = read_settings(run)
    settings = saved.get("training", {})
    data = settings.get("data", {})
    if "preset" not in data:
        raise ValueError(f"The run must be one of `kav train`. Received: {run}")
    preset, precision = get(data["preset"]), settings["precision"]
    plain = {
        "precision": precision,
        "data": {"batch_tokens": None, "seed": data["seed"]},
        "validate_every": RunOptions.validate_every,
    }
    model, tokens, config = build_run(preset, corpus, run, None, {}, {}, plain)
    described = describe_run(model, tokens.tokenizer, config)
    free = [("backend",), (MACHINE,)]
    others = {d.name: d.old for d in differences_of(saved, described, free)}
    if "train_sentences" in others:
        raise ValueError(
            "--data must be what the run was trained on, with the same training "
            f"sentences. Received: {corpus.name}, for {run}"
        )
    words = ["kav", "train", "--data", corpus.name]
    words += ["--source", corpus.source_language, "--target", corpus.target_language]
    words += ["--preset", preset.name, "--precision", precision]
    names = option_names()
    for key, value in {"seed": data["seed"], **others}.items():
        words += [names.get(key, key), str(value)]
    events = read_log(run / LOG)
    periods = [event for event in events if event["event"] == "period"]
    return preset, Training(
        [*words, "--run", f"runs/{preset.variant}"],
        data["seed"],
        periods[-1]["step"],
        round(sum(period["tokens"] for period in periods)),
        round(events[-1]["seconds"]),
        precision,
        better_model(run / LOG),
        saved.get(MACHINE, {}),
    )


def page_of(card: Card) -> str:
    """The page of the model: a model card of Hugging Face, in Markdown."""
    return TEMPLATE.read_text("utf-8").format(
        card=card,
        license=card.license.lower().replace(" ", "-"),
        megabytes=card.bytes / 1e6,
        source=card.languages.get(card.source, card.source),
        target=card.languages.get(card.target, card.target),
        attention=", ".join(card.attention) or "none but that of an LSTM",
        sizes=in_words(card.sizes),
        search=in_words(card.search),
        architecture=card.after and f", with the architecture of `{card.after}`",
        weights=WEIGHTS[card.training.weights],
        sentence=shlex.quote(card.examples[0].source),
        pairs=", ".join(
            f"{count:,} in {split}" for split, count in card.data.pairs.items()
        ),
        files=table(("file", "sha256"), card.data.files.items()),
        command=shlex.join(card.training.command),
        time=f"{card.training.seconds / 60:.0f} minutes",
        trained_on=in_words(card.training.machine) or "not recorded",
        scores=table(
            ("", "packed, 8 bits", "float32", "p of the difference", "signature"),
            map(score_row, card.scores),
        ),
        measured_on=in_words(card.speed.machine),
        examples=table(
            ("source", "translation", "reference", "chrF"),
            map(dataclasses.astuple, card.examples),
        ),
        limits="\n".join(f"- {limit}" for limit in card.limits),
    )


def score_row(score: Score) -> list[str]:
    """The cells of a score: both values with their intervals, and its signature."""
    return [
        score.name,
        f"{score.packed:.2f} ± {score.packed_interval:.2f}",
        f"{score.float32:.2f} ± {score.float32_interval:.2f}",
        f"{score.p_value:.3f}",
        f"`{score.signature}`",
    ]


def in_words(properties: Mapping[str, Any]) -> str:
    """Properties in one line, without those that are missing or false."""
    return ", ".join(
        key.replace("_", " ") if value is True else f"{key.replace('_', ' ')} {value}"
        for key, value in properties.items()
        if value
    )


def table(header: Any, rows: Any) -> str:
    """A table in Markdown, with a line for each row."""
    lines = [header, ["---"] * len(header), *rows]
    texts = ([str(cell).replace("|", "\\|") for cell in line] for line in lines)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in texts)


def write_with_card(model: Path, card: Card, folder: Path) -> None:
    """Writes a copy of a model folder, with a card and its page.

    Args:
        model: the model folder.
        card: its card.
        folder: the new folder, written completely or not at all.

    Raises:
        OSError: it could not be written.
    """
    with new_folder(folder) as writer:
        for file in sorted(model.iterdir()):
            if file.name not in (MANIFEST, CARD, PAGE):
                writer.write_bytes(file.name, file.read_bytes())
        writer.write_json(CARD, dataclasses.asdict(card))
        writer.write_bytes(PAGE, page_of(card).encode())


app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode="rich")
app.command(cls=Command)(pack)

if __name__ == "__main__":
    app()
