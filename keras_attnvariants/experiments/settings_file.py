"""The file of a comparison: its tables and keys, read and checked."""

from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import fields
from importlib.resources import files
from pathlib import Path
from typing import Any

from keras_attnvariants.analysis.named import ANALYSES
from keras_attnvariants.evaluation.metrics import METRICS
from keras_attnvariants.evaluation.metrics import check_tokenizer
from keras_attnvariants.experiments import sections
from keras_attnvariants.experiments.sections import Section
from keras_attnvariants.experiments.settings import AnalysisSettings
from keras_attnvariants.experiments.settings import ComparisonSettings
from keras_attnvariants.experiments.settings import SystemSettings
from keras_attnvariants.experiments.settings import TestSettings
from keras_attnvariants.experiments.settings import path_name
from keras_attnvariants.training import TrainingConfig
from keras_attnvariants.tuning.budget import Budget
from keras_attnvariants.utils.checks import check_finite
from keras_attnvariants.utils.checks import check_integer
from keras_attnvariants.utils.checks import check_positive
from keras_attnvariants.utils.checks import check_share
from keras_attnvariants.utils.files import TEMPORARY
from keras_attnvariants.utils.files import write_file
from keras_attnvariants.utils.seeds import check_seed

TEMPLATE = files("keras_attnvariants.experiments") / "template.toml"

# A table, and the name of the sentences that it describes.
SHOWN = "shown"

# What the file may have, by table.
TOP = (
    *("title", "baseline", "seeds", "corpus", "test_sets", "vocabulary", "budget"),
    *("options", "training", "decoding", "scores", "speed", "run", "analyses"),
    *(SHOWN, "systems"),
)
CORPUS = ("data", "source", "target", "max_invalid")
TEST_SET = ("data", "split")
VOCABULARY = ("size", "model_type", "character_coverage")
BUDGET = tuple(f.name for f in fields(Budget))
DECODING = ("beam_size", "length_penalty")
SCORES = ("metrics", "tokenize", "samples", "confidence", "examples")
SPEED = ("sentences", "runs")
RUN = ("at_once", "threads", "precision")
ANALYSIS = (
    *("names", "systems", "test_set", "sentences", "alignments", "contrastive"),
    "attention_sentences",
)
SYSTEM = ("preset", "options", "training", "published")
PRECISIONS = ("auto", "float32", "mixed_bfloat16", "mixed_float16")

# The budget, the precision and the data have tables of their own. The corpus of a
# comparison has no alignments.
_ELSEWHERE = (
    *("steps", "validate_every", "precision", "data"),
    *("alignment_weight", "alignment_layer", "alignment_head"),
)
TRAINING = (
    *("learning_rate", "warmup_steps", "batch_tokens", "bleu_sentences"),
    *(
        f.name
        for f in fields(TrainingConfig)
        if f.name not in (*_ELSEWHERE, "learning_rate")
    ),
)

LONGEST_NAME = 60


def read_settings(path: Path) -> ComparisonSettings:
    """The comparison that a file describes.

    Raises:
        OSError: the file cannot be read.
        ValueError: something in it is wrong; the message names the file and the key.
    """
    try:
        return parse(*sections.read_toml(path))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def write_template(path: Path) -> None:
    """Writes a file in which every key of a comparison is explained.

    Raises:
        FileExistsError: there is a file.
        OSError: it cannot be written.
    """
    if path.exists():
        raise FileExistsError(f"There is such a file already. Received: {path}")
    write_file(path, TEMPLATE.read_bytes())


def parse(text: str, values: Mapping[str, Any]) -> ComparisonSettings:
    """The comparison that the tables of a file describe.

    Raises:
        ValueError: something in it is wrong.
    """
    top = Section("", values, TOP)
    corpus = top.section("corpus", CORPUS)
    vocabulary = top.section("vocabulary", VOCABULARY)
    decoding, scores = (
        top.section(name, known)
        for name, known in (("decoding", DECODING), ("scores", SCORES))
    )
    speed, run = top.section("speed", SPEED), top.section("run", RUN)
    systems = read_systems(top)
    test_sets = read_test_sets(top)
    names = [system.name for system in systems]
    return ComparisonSettings(
        title=top.take("title", sections.text, "Comparison"),
        baseline=top.take("baseline", sections.one_of(names)),
        seeds=top.take("seeds", sections.each(check_seed)),
        data=corpus.take("data", sections.text),
        source=corpus.take("source", sections.text),
        target=corpus.take("target", sections.text),
        max_invalid=corpus.take("max_invalid", check_share, 0.01),
        test_sets=test_sets,
        budget=read_budget(top.section("budget", BUDGET)),
        systems=systems,
        vocabulary_size=vocabulary.take("size", check_integer, None),
        subwords=read_subwords(vocabulary),
        beam_size=decoding.take("beam_size", check_integer, None),
        length_penalty=decoding.take("length_penalty", check_finite, None),
        metrics=scores.take(
            "metrics", sections.each(sections.one_of(METRICS)), tuple(METRICS)
        ),
        tokenize=scores.take("tokenize", tokenizer, "13a"),
        samples=scores.take("samples", check_integer, 1000),
        confidence=scores.take("confidence", confidence, 0.95),
        examples=scores.take("examples", count, 8),
        speed_sentences=speed.take("sentences", check_integer, 100),
        speed_runs=speed.take("runs", count, 3),
        at_once=run.take("at_once", check_integer, 1),
        threads=run.take("threads", check_integer, None),
        precision=run.take("precision", sections.one_of(PRECISIONS), "auto"),
        analyses=read_analyses(top, names, [test.name for test in test_sets]),
        shown=read_shown(top, test_sets),
        text=text,
    )


def read_systems(top: Section) -> tuple[SystemSettings, ...]:
    """The systems, with what all of them have in common."""
    common = {
        "options": top.take("options", sections.table, {}),
        "training": top.section("training", TRAINING).values,
    }
    found = []
    for section in top.sections("systems", SYSTEM):
        options = section.take("options", sections.table, {})
        training = section.section("training", TRAINING).values
        found.append(
            SystemSettings(
                name=section.name.removeprefix("systems."),
                preset=section.take("preset", sections.text),
                options={**common["options"], **options},
                training={**common["training"], **training},
                published=section.take("published", sections.text, None),
                changes={**options, **training},
            )
        )
    check_names("systems", [system.name for system in found])
    return tuple(found)


def read_test_sets(top: Section) -> tuple[TestSettings, ...]:
    """The test sets: splits of the corpus, or tables with other data."""
    values = top.section("test_sets").values
    check_names("test_sets", list(values))
    found = []
    for name, value in values.items():
        if isinstance(value, str):
            found.append(TestSettings(name, value))
            continue
        section = Section(f"test_sets.{name}", value, TEST_SET)
        found.append(read_data(name, section))
    return tuple(found)


def read_shown(top: Section, test_sets: Sequence[TestSettings]) -> TestSettings | None:
    """What is shown in the place of the test sets, if the file has such a table."""
    if SHOWN not in top.values:
        return None
    section = top.section(SHOWN, TEST_SET)
    check_names("test_sets", [*(test.name for test in test_sets), SHOWN])
    return read_data(SHOWN, section)


def read_data(name: str, section: Section) -> TestSettings:
    """Sentences by this name: a split of the corpus, or of other data."""
    data = section.take("data", sections.text, None)
    return TestSettings(name, section.take("split", sections.text), data)


def read_budget(section: Section) -> Budget:
    """The budget of every run."""
    try:
        return Budget(**section.values)
    except ValueError as error:
        raise ValueError(f"[budget] {error}") from error


def read_subwords(section: Section) -> dict[str, Any]:
    """Options of the vocabulary that are given."""
    checks = {
        "model_type": sections.one_of(("unigram", "bpe")),
        "character_coverage": check_positive,
    }
    return {
        key: section.take(key, check)
        for key, check in checks.items()
        if key in section.values
    }


def read_analyses(
    top: Section, systems: Sequence[str], test_sets: Sequence[str]
) -> AnalysisSettings:
    """What is analysed."""
    section = top.section("analyses", ANALYSIS)
    chosen = sections.each(sections.one_of(systems))
    settings = AnalysisSettings(
        names=section.take("names", sections.each(sections.one_of(ANALYSES)), ()),
        systems=section.take("systems", chosen, tuple(systems)),
        test_set=section.take("test_set", sections.one_of(test_sets), test_sets[0]),
        sentences=section.take("sentences", check_integer, None),
        alignments=section.take("alignments", sections.text, None),
        contrastive=section.take("contrastive", sections.text, None),
        attention_sentences=section.take("attention_sentences", count, 0),
    )
    for key, needed_by in (
        ("alignments", ("alignment-errors",)),
        ("contrastive", ("contrastive", "agreement")),
    ):
        wanting = [name for name in needed_by if name in settings.names]
        if wanting and getattr(settings, key) is None:
            raise ValueError(f"`analyses.{key}` is missing: {wanting[0]!r} needs it.")
    return settings


def check_names(where: str, names: Sequence[str]) -> None:
    """Raises unless there are names, each can be that of a folder, and none is twice.

    Raises:
        ValueError: says which.
    """
    if not names:
        raise ValueError(f"`{where}` must have at least one table or entry.")
    seen: dict[str, str] = {}
    for name in names:
        wrong = "/" in name or "\\" in name or not name.isprintable()
        if wrong or not name.strip() or name.startswith((".", "-", TEMPORARY)):
            raise ValueError(
                f"`{where}` must have names without slashes and control characters "
                "that begin with a letter or digit: folders are called after them. "
                f"Received: {name!r}"
            )
        if len(name) > LONGEST_NAME:
            raise ValueError(
                f"`{where}` must have names of at most {LONGEST_NAME} characters. "
                f"Received: {name!r}"
            )
        # On some file systems, large and small letters are the same.
        folder = path_name(name).casefold()
        if folder in seen:
            raise ValueError(
                f"`{where}` must have names that differ as names of folders. "
                f"Received: {seen[folder]!r} and {name!r}"
            )
        seen[folder] = name


def count(name: str, value: Any) -> int:
    """A number of things, which may be none."""
    return check_integer(name, value, minimum=0)


def confidence(name: str, value: Any) -> float:
    """A number between 0 and 1."""
    if 0 < check_positive(name, value) < 1:
        return float(value)
    raise ValueError(f"`{name}` must be between 0 and 1. Received: {value!r}")


def tokenizer(name: str, value: Any) -> str:
    """The name of one of sacrebleu's tokenizers."""
    check_tokenizer(sections.text(name, value))
    return value
