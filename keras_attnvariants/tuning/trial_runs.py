"""A trial: a point of the space, trained as runs of ours, each in a folder."""

import contextlib
import copy
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field
from pathlib import Path
from typing import Any

import keras

from keras_attnvariants.attention.registry import PACKAGE
from keras_attnvariants.data import Corpus
from keras_attnvariants.data import Tokenizer
from keras_attnvariants.data.model_folders import TOKENIZER
from keras_attnvariants.presets import Preset
from keras_attnvariants.training import TimeLimit
from keras_attnvariants.training import TrainingResult
from keras_attnvariants.training import train_preset
from keras_attnvariants.training.precision import faster_precision
from keras_attnvariants.training.vocabulary import copy_vocabulary
from keras_attnvariants.training.vocabulary import prepare_vocabulary
from keras_attnvariants.tuning.budget import Budget
from keras_attnvariants.tuning.results import OBJECTIVES
from keras_attnvariants.tuning.results import TrialRecord
from keras_attnvariants.tuning.results import forget_peak
from keras_attnvariants.tuning.results import measure_runs
from keras_attnvariants.tuning.results import peak_mib
from keras_attnvariants.tuning.space import SearchSpace
from keras_attnvariants.tuning.space import TrialArguments
from keras_attnvariants.utils.checks import check_choice
from keras_attnvariants.utils.checks import check_integer
from keras_attnvariants.utils.files import TEMPORARY
from keras_attnvariants.utils.files import write_file
from keras_attnvariants.utils.locks import LOCK

# What all trials compute in, if a search chose it.
PRECISION = "precision.txt"
# What keras-tuner's Hyperband adds to the values of a trial.
EPOCHS = "tuner/epochs"
PARENT = "tuner/trial_id"
HYPERBAND = "tuner/"


@dataclass(frozen=True)
class TrialRunner:
    """Trains the trials of a search, with all that they share.

    Attributes:
        preset: trained where the space says nothing else.
        corpus: with a split "validation", which the objective is measured on.
        space: the dimensions that vary.
        budget: the budget of each trial.
        objective: `"loss"` or `"bleu"`, on the validation split.
        seeds: one run of each trial for each; its score is their mean.
        vocabulary_size: the same for all trials, or losses could not be compared;
            `None` for that of the preset.
        bleu_sentences: number of validation sentences for `"bleu"`.
        settings: fields of `TrainingConfig`, such as `patience`.
        precision: dtype policy, or `"auto"`; as for `train_preset`.
        subwords: options of the vocabulary; as for `train_preset`.

    Raises:
        ValueError: an argument is out of range.
    """

    preset: Preset
    corpus: Corpus
    space: SearchSpace
    budget: Budget
    objective: str = "loss"
    seeds: tuple[int, ...] = (1,)
    vocabulary_size: int | None = None
    bleu_sentences: int = 200
    settings: Mapping[str, Any] = field(default_factory=dict)
    precision: str = "auto"
    subwords: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_choice("objective", self.objective, OBJECTIVES)
        check_integer("bleu_sentences", self.bleu_sentences)
        if not self.seeds or len(set(self.seeds)) < len(self.seeds):
            raise ValueError(
                f"`seeds` must be different integers. Received: {self.seeds}"
            )
        for seed in self.seeds:
            check_integer("seeds", seed, minimum=0)

    def prepare(self, folder: Path) -> None:
        """Train the vocabulary of all trials and choose their precision, once."""
        size = self.vocabulary_size or self.preset.options["vocabulary_size"]
        prepare_vocabulary(folder, self.corpus, size, self.subwords)
        if self.precision == "auto" and not (folder / PRECISION).is_file():
            write_file(folder / PRECISION, faster_precision().encode())

    def run(self, folder: Path, values: Mapping[str, Any]) -> TrialRecord:
        """Train a trial, or continue it; and write its record.

        Args:
            folder: of the trial, in that of the search.
            values: the point of the space, as keras-tuner stores it.
        """
        forget_peak()
        if parent := values.get(PARENT):
            copy_runs(folder.with_name(f"trial_{parent}"), folder)
        arguments = self.space.arguments(self.preset, values)
        sizes = self._with_length_ratio(folder.parent, arguments.sizes)
        epochs = values.get(EPOCHS, self.budget.validations)
        results = {}
        for seed in self.seeds:
            run = folder / f"seed-{seed}"
            copy_vocabulary(folder.parent, run)
            chosen = arguments._replace(sizes=sizes)
            results[seed] = self._train(run, seed, epochs, chosen)
            keras.utils.clear_session()
        scores = {seed: self._score(result) for seed, result in results.items()}
        best = max if OBJECTIVES[self.objective][1] else min
        speed, minutes = measure_runs([folder / f"seed-{s}" for s in self.seeds])
        record = TrialRecord(
            trial=folder.name.removeprefix("trial_"),
            values={k: v for k, v in values.items() if not k.startswith(HYPERBAND)},
            scores=tuple(scores.values()),
            updates=max(result.step for result in results.values()),
            parameters=self.preset.count(self.vocabulary_size, **sizes),
            tokens_per_second=speed,
            memory_mib=peak_mib(),
            minutes=minutes,
            best_seed=best(scores, key=scores.__getitem__),
        )
        record.write(folder)
        return record

    def _train(
        self, run: Path, seed: int, epochs: int, arguments: TrialArguments
    ) -> TrainingResult:
        batch_tokens = arguments.batch_tokens or self.preset.training.batch_tokens
        precision = self.precision
        if precision == "auto":
            precision = (run.parents[1] / PRECISION).read_text()
        given = {**self.settings, **arguments.settings}
        limit = self.budget.time_limit(epochs)
        return train_preset(
            self.preset,
            self.corpus,
            run,
            vocabulary_size=self.vocabulary_size,
            subwords=self.subwords,
            batch_tokens=batch_tokens,
            sizes=arguments.sizes,
            settings=self.budget.training(batch_tokens, given, epochs),
            precision=precision,
            seed=seed,
            bleu_sentences=self.bleu_sentences if self.objective == "bleu" else 0,
            samples=0,
            callbacks=[] if limit is None else [TimeLimit(limit)],
            verbose=0,
        )

    def _score(self, result: TrainingResult) -> float:
        """The score of the better model, which `load_run` loads."""
        found = [s for s in (result.best, result.averaged) if s is not None]
        return max(found) if OBJECTIVES[self.objective][1] else min(found)

    def _with_length_ratio(
        self, folder: Path, sizes: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Sizes in which hard-coded cross-attention has the ratio of the corpus."""
        found = copy.deepcopy(dict(sizes))
        value = found.get("cross_attention")
        layers = [
            layer["config"]
            for layer in (value if isinstance(value, list) else [value])
            if layer and layer["class_name"] == f"{PACKAGE}>HardCodedCrossAttention"
        ]
        if layers:
            from keras_attnvariants.data import TokenizedCorpus

            tokenizer = Tokenizer.load(folder / TOKENIZER)
            ratio = TokenizedCorpus(self.corpus, tokenizer).length_ratio()
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
