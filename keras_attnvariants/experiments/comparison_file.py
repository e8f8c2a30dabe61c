"""The TOML file of a comparison: its tables and keys, read and checked."""

import tomllib
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import fields
from importlib.resources import files
from pathlib import Path
from typing import Any

from keras_attnvariants.analysis.named import ANALYSES
from keras_attnvariants.evaluation.metrics import METRICS
from keras_attnvariants.evaluation.metrics import check_tokenizer
from keras_attnvariants.experiments.settings import AnalysisSettings
from keras_attnvariants.experiments.settings import ComparisonSettings
from keras_attnvariants.experiments.settings import SystemSettings
from keras_attnvariants.experiments.settings import TestSettings
from keras_attnvariants.experiments.settings import check_names
from keras_attnvariants.training import TrainingConfig
from keras_attnvariants.tuning.budget import Budget
from keras_attnvariants.utils.checks import check_finite
from keras_attnvariants.utils.checks import check_integer
from keras_attnvariants.utils.checks import check_known
from keras_attnvariants.utils.checks import check_positive
from keras_attnvariants.utils.checks import check_seed
from keras_attnvariants.utils.checks import check_share
from keras_attnvariants.utils.files import write_file

TEMPLATE = files("keras_attnvariants.experiments") / "template.toml"

# Takes the name of a key and its value; returns the value, or raises a `ValueError`.
Check = Callable[[str, Any], Any]


def any_value(name: str, value: Any) -> Any:
    """The value, which is checked elsewhere."""
    return value


def text(name: str, value: Any) -> str:
    """A text that is not empty."""
    if isinstance(value, str) and value.strip():
        return value
    raise ValueError(f"`{name}` must be a text. Received: {value!r}")


def table(name: str, value: Any) -> dict[str, Any]:
    """A table with any keys."""
    if isinstance(value, dict):
        return value
    raise ValueError(f"`{name}` must be a table. Received: {value!r}")


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
    check_tokenizer(text(name, value))
    return str(value)


def one_of(known: Collection[str]) -> Check:
    """A check for one of some texts."""

    def check(name: str, value: Any) -> str:
        check_known(f"`{name}`", text(name, value), known)
        return str(value)

    return check


def each(check: Check) -> Check:
    """A check for a list, not empty, of different values that pass a check."""

    def check_all(name: str, value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list) or not value:
            raise ValueError(f"`{name}` must be a list. Received: {value!r}")
        found = tuple(check(name, item) for item in value)
        for number, item in enumerate(found):
            if item in found[:number]:
                raise ValueError(f"`{name}` must not repeat. Received: {item!r} twice")
        return found

    return check_all


# The budget, the precision and the data have tables of their own. The corpus of a
# comparison has no alignments.
_ELSEWHERE = (
    *("steps", "validate_every", "precision", "data"),
    *("alignment_weight", "alignment_layer", "alignment_head"),
)
# Keys of `training` that are no fields of `TrainingConfig`.
_OF_BATCHES = ("warmup_steps", "batch_tokens", "bleu_sentences")
_TRAINING = (
    *_OF_BATCHES,
    *(field.name for field in fields(TrainingConfig) if field.name not in _ELSEWHERE),
)

# The keys of each table, and how their values are checked.
TABLES: dict[str, dict[str, Check]] = {
    "corpus": {
        "data": text,
        "source": text,
        "target": text,
        "max_invalid": check_share,
    },
    "test_set": {"data": text, "split": text},
    "vocabulary": {
        "size": check_integer,
        "model_type": one_of(("unigram", "bpe")),
        "character_coverage": check_positive,
    },
    "budget": {field.name: any_value for field in fields(Budget)},
    "training": dict.fromkeys(_TRAINING, any_value),
    "decoding": {"beam_size": check_integer, "length_penalty": check_finite},
    "scores": {
        "metrics": each(one_of(METRICS)),
        "tokenize": tokenizer,
        "samples": check_integer,
        "confidence": confidence,
        "examples": count,
    },
    "speed": {"sentences": check_integer, "runs": count},
    "run": {
        "at_once": check_integer,
        "threads": check_integer,
        "precision": one_of(("auto", "float32", "mixed_bfloat16", "mixed_float16")),
    },
    "analyses": {
        "names": each(one_of(ANALYSES)),
        "systems": each(text),
        "test_set": text,
        "sentences": check_integer,
        "alignments": text,
        "contrastive": text,
        "attention_sentences": count,
    },
    "system": {"preset": text, "options": table, "training": table, "published": text},
}
TOP: dict[str, Check] = {
    **{
        "title": text,
        "baseline": text,
        "seeds": each(check_seed),
        "import": each(text),
    },
    **dict.fromkeys(("corpus", "test_sets", "vocabulary", "budget"), table),
    **dict.fromkeys(("options", "training", "decoding", "scores", "speed"), table),
    **dict.fromkeys(("run", "analyses", "shown", "systems"), table),
}


def read_settings(path: Path) -> ComparisonSettings:
    """The comparison that a file describes.

    Raises:
        OSError: the file cannot be read.
        ValueError: something in it is wrong; the message names the file and the key.
    """
    data = path.read_bytes()
    try:
        try:
            content = data.decode()
            values = tomllib.loads(content)
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
            raise ValueError(f"It is no TOML: {error}") from error
        return parse(content, values)
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


def checked(
    name: str, values: Any, checks: Mapping[str, Check], *needed: str
) -> dict[str, Any]:
    """The values of a table that are there, each checked.

    Args:
        name: of the table; `""` for the top of the file.
        values: the table.
        checks: its keys, and how their values are checked.
        *needed: keys that must be there.

    Raises:
        ValueError: a key is unknown (the message has the nearest) or missing, or a
            value is wrong.
    """
    where = f"{name}." if name else ""
    for key in table(name, values):
        check_known(f"[{name}]" if name else "The top of the file", key, checks)
    for key in needed:
        if key not in values:
            raise ValueError(f"`{where}{key}` is missing.")
    return {key: checks[key](where + key, value) for key, value in values.items()}


def parse(content: str, values: Mapping[str, Any]) -> ComparisonSettings:
    """The comparison that the tables of a file describe.

    Raises:
        ValueError: something in it is wrong.
    """
    top = checked("", values, TOP, "baseline", "seeds")
    systems = read_systems(top)
    test_sets = read_test_sets(top)
    names = [system.name for system in systems]
    check_known("`baseline`", top["baseline"], names)
    found = {
        name: checked(name, top.get(name, {}), TABLES[name])
        for name in ("vocabulary", "decoding", "scores", "speed", "run")
    }
    vocabulary, speed = found["vocabulary"], found["speed"]
    size = {"vocabulary_size": vocabulary.pop("size")} if "size" in vocabulary else {}
    corpus = top.get("corpus", {})
    return ComparisonSettings(
        **{key: top[key] for key in ("title", "baseline", "seeds") if key in top},
        imports=top.get("import", ()),
        **checked("corpus", corpus, TABLES["corpus"], "data", "source", "target"),
        test_sets=test_sets,
        budget=read_budget(top),
        systems=systems,
        subwords=vocabulary,
        **size,
        **{f"speed_{key}": value for key, value in speed.items()},
        **found["decoding"],
        **found["scores"],
        **found["run"],
        analyses=read_analyses(top, names, [test.name for test in test_sets]),
        shown=read_shown(top, test_sets),
        text=content,
    )


def read_systems(top: Mapping[str, Any]) -> tuple[SystemSettings, ...]:
    """The systems, with what all of them have in common."""
    options = top.get("options", {})
    training = checked("training", top.get("training", {}), TABLES["training"])
    found = []
    for name, values in top.get("systems", {}).items():
        own = checked(f"systems.{name}", values, TABLES["system"], "preset")
        settings = own.get("training", {})
        checked(f"systems.{name}.training", settings, TABLES["training"])
        found.append(
            SystemSettings(
                name=name,
                preset=own["preset"],
                options={**options, **own.get("options", {})},
                training={**training, **settings},
                published=own.get("published"),
                changes={**own.get("options", {}), **settings},
            )
        )
    check_names("systems", [system.name for system in found])
    return tuple(found)


def read_test_sets(top: Mapping[str, Any]) -> tuple[TestSettings, ...]:
    """The test sets: splits of the corpus, or tables with other data."""
    values = top.get("test_sets", {})
    check_names("test_sets", list(values))
    return tuple(
        TestSettings(name, value)
        if isinstance(value, str)
        else read_data(name, f"test_sets.{name}", value)
        for name, value in values.items()
    )


def read_shown(
    top: Mapping[str, Any], test_sets: Sequence[TestSettings]
) -> TestSettings | None:
    """The sentences that are shown in the place of the test sets, if there are some."""
    if "shown" not in top:
        return None
    check_names("test_sets", [*(test.name for test in test_sets), "shown"])
    return read_data("shown", "shown", top["shown"])


def read_data(name: str, where: str, values: Any) -> TestSettings:
    """Sentences by this name: a split of the corpus, or of other data."""
    found = checked(where, values, TABLES["test_set"], "split")
    return TestSettings(name, found["split"], found.get("data"))


def read_budget(top: Mapping[str, Any]) -> Budget:
    """The budget of every run."""
    values = checked("budget", top.get("budget", {}), TABLES["budget"])
    try:
        return Budget(**values)
    except ValueError as error:
        raise ValueError(f"[budget] {error}") from error


def read_analyses(
    top: Mapping[str, Any], systems: Sequence[str], test_sets: Sequence[str]
) -> AnalysisSettings:
    """The analyses; by default they have all systems and the first test set."""
    found = checked("analyses", top.get("analyses", {}), TABLES["analyses"])
    found = {"systems": tuple(systems), "test_set": test_sets[0], **found}
    for system in found["systems"]:
        check_known("`analyses.systems`", system, systems)
    check_known("`analyses.test_set`", found["test_set"], test_sets)
    settings = AnalysisSettings(**found)
    for key, needed_by in (
        ("alignments", ("alignment-errors",)),
        ("contrastive", ("contrastive", "agreement")),
    ):
        wanting = [name for name in needed_by if name in settings.names]
        if wanting and getattr(settings, key) is None:
            raise ValueError(f"`analyses.{key}` is missing: {wanting[0]!r} needs it.")
    return settings
