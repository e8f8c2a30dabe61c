"""A trial: a point of the space, trained as runs of ours, each in a folder."""

import contextlib
import copy
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

import keras

from keras_attnvariants.attention.registry import PACKAGE
from keras_attnvariants.data import Corpus
from keras_attnvariants.data import TokenizedCorpus
from keras_attnvariants.data import Tokenizer
from keras_attnvariants.data.model_folders import TOKENIZER
from keras_attnvariants.training import TimeLimit
from keras_attnvariants.training import TrainingResult
from keras_attnvariants.training import train_preset
from keras_attnvariants.training.run_settings import copy_vocabulary
from keras_attnvariants.tuning.results import OBJECTIVES
from keras_attnvariants.tuning.results import TrialRecord
from keras_attnvariants.tuning.results import forget_peak
from keras_attnvariants.tuning.results import measure_runs
from keras_attnvariants.tuning.results import peak_mib
from keras_attnvariants.tuning.space import TrialArguments
from keras_attnvariants.utils.files import TEMPORARY
from keras_attnvariants.utils.locks import LOCK

if TYPE_CHECKING:
    from keras_attnvariants.tuning.search import Search

# What keras-tuner's Hyperband adds to the values of a trial.
EPOCHS = "tuner/epochs"
PARENT = "tuner/trial_id"
HYPERBAND = "tuner/"


def run_trial(search: "Search", folder: Path, values: Mapping[str, Any]) -> TrialRecord:
    """Train a trial, or continue it; and write its record.

    Args:
        search: which it is a trial of.
        folder: of the trial, in that of the search.
        values: the point of the space, as keras-tuner stores it.
    """
    forget_peak()
    if parent := values.get(PARENT):
        copy_runs(folder.with_name(f"trial_{parent}"), folder)
    arguments = search.space.arguments(search.preset, values)
    sizes = with_length_ratio(arguments.sizes, search.corpus, search.folder)
    parts = values.get(EPOCHS, search.budget.validations)
    choose = max if OBJECTIVES[search.objective][1] else min
    scores, steps = {}, []
    for seed in search.seeds:
        run = folder / f"seed-{seed}"
        copy_vocabulary(search.folder, run)
        result = train(search, run, seed, parts, arguments._replace(sizes=sizes))
        # The better model is what `load_run` loads.
        found = [s for s in (result.best, result.averaged) if s is not None]
        scores[seed] = choose(found)
        steps.append(result.step)
        keras.utils.clear_session()
    speed, minutes = measure_runs([folder / f"seed-{seed}" for seed in search.seeds])
    record = TrialRecord(
        trial=folder.name.removeprefix("trial_"),
        values={k: v for k, v in values.items() if not k.startswith(HYPERBAND)},
        scores=tuple(scores.values()),
        updates=max(steps),
        parameters=search.preset.count(search.vocabulary_size, **sizes),
        tokens_per_second=speed,
        memory_mib=peak_mib(),
        minutes=minutes,
        best_seed=choose(scores, key=scores.__getitem__),
    )
    record.write(folder)
    return record


def train(
    search: "Search", run: Path, seed: int, parts: int, arguments: TrialArguments
) -> TrainingResult:
    """Train one run of a trial, or continue it.

    Args:
        search: which it belongs to.
        run: its folder.
        seed: of the run.
        parts: of the budget.
        arguments: the point of the space.
    """
    budget = search.budget
    batch_tokens = arguments.batch_tokens or search.preset.training.batch_tokens
    given = {**search.settings, **arguments.settings}
    limit = budget.time_limit(parts)
    return train_preset(
        search.preset,
        search.corpus,
        run,
        vocabulary_size=search.vocabulary_size,
        subwords=search.subwords,
        batch_tokens=batch_tokens,
        sizes=arguments.sizes,
        settings=budget.training(batch_tokens, given, parts),
        precision=search.chosen_precision,
        seed=seed,
        bleu_sentences=search.bleu_sentences if search.objective == "bleu" else 0,
        samples=0,
        callbacks=[] if limit is None else [TimeLimit(limit)],
        verbose=0,
    )


def with_length_ratio(
    sizes: Mapping[str, Any], corpus: Corpus, folder: Path
) -> dict[str, Any]:
    """Sizes in which hard-coded cross-attention has the ratio of the corpus.

    Args:
        sizes: arguments of a model.
        corpus: the corpus.
        folder: of the search, with the tokenizer.
    """
    found = copy.deepcopy(dict(sizes))
    value = found.get("cross_attention")
    layers = [
        layer["config"]
        for layer in (value if isinstance(value, list) else [value])
        if layer and layer["class_name"] == f"{PACKAGE}>HardCodedCrossAttention"
    ]
    if layers:
        tokenizer = Tokenizer.load(folder / TOKENIZER)
        ratio = TokenizedCorpus(corpus, tokenizer).length_ratio()
        for config in layers:
            config.setdefault("length_ratio", ratio)
    return found


def copy_runs(parent: Path, folder: Path) -> None:
    """Copy the runs of a trial, so that another one continues them.

    A run appears under its name when it is complete; one that is there already, since
    the trial was killed, stays as it is.
    """
    for run in sorted(parent.glob("seed-*")):
        target, draft = folder / run.name, folder / f"{TEMPORARY}{run.name}"
        if target.exists():
            continue
        shutil.rmtree(draft, ignore_errors=True)
        shutil.copytree(run, draft, ignore=shutil.ignore_patterns(LOCK))
        with contextlib.suppress(FileExistsError):
            os.rename(draft, target)
