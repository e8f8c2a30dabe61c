"""Callbacks at the end of a period: BLEU, best model, early stopping."""

import math
import sys
import time
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import keras

from keras_attnvariants.data.model_folders import save_model
from keras_attnvariants.data.tokenizer import Tokenizer
from keras_attnvariants.training.callbacks import Logs
from keras_attnvariants.training.callbacks import Progress
from keras_attnvariants.training.callbacks import StatefulCallback


class ValidationBLEU(keras.callbacks.Callback):
    """Translates the validation texts after each period and logs `val_bleu`.

    BLEU is sacreBLEU's, from raw text to raw text, between 0 and 100.

    Args:
        translate: maps a list of source texts to their translations, for example
            `Translator.translate` of the model in training.
        sources: source texts.
        references: one reference translation of each.
        tokenize: sacreBLEU's tokenizer, `"13a"`, `"intl"`, `"ja-mecab"`, `"zh"`, ….

    Raises:
        ValueError: there are no texts, or not as many references as sources.
    """

    def __init__(
        self,
        translate: Callable[[list[str]], Sequence[str]],
        sources: Sequence[str],
        references: Sequence[str],
        tokenize: str = "13a",
    ) -> None:
        super().__init__()
        if not sources or len(sources) != len(references):
            raise ValueError(
                "`sources` and `references` must be equally many, and at least one. "
                f"Received: {len(sources)} sources, {len(references)} references"
            )
        self._translate = translate
        self._sources = list(sources)
        self._references = list(references)
        # Late: a training without BLEU does not need it.
        from sacrebleu.metrics.bleu import BLEU

        self._bleu = BLEU(tokenize=tokenize)

    def score(self) -> float:
        """BLEU of the model as it is now."""
        return self._corpus_score(self._translate(self._sources))

    def _corpus_score(self, translations: Sequence[str]) -> float:
        return self._bleu.corpus_score(list(translations), [self._references]).score

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        if logs is not None:
            # The callbacks that follow read it there, like the metrics of Keras.
            logs["val_bleu"] = self.score()


class AffordableBLEU(ValidationBLEU):
    """Logs `val_bleu` like its base class, at validations where that costs little.

    It measures how long translating takes. A validation goes without BLEU if the
    translations so far and the next ones would take more than `share` of the time
    since training began, and so does one whose translations turn out to.

    Args:
        translate, sources, references, tokenize: as in `ValidationBLEU`.
        share: of the time that translating may take.
    """

    # Sentences that are translated before the next look at the clock.
    CHUNK = 32

    def __init__(
        self,
        translate: Callable[[list[str]], Sequence[str]],
        sources: Sequence[str],
        references: Sequence[str],
        tokenize: str = "13a",
        share: float = 0.05,
    ) -> None:
        super().__init__(translate, sources, references, tokenize)
        # By length: few shapes of batches are then compiled for each look.
        order = sorted(range(len(sources)), key=lambda i: len(sources[i]))
        self._sources = [sources[i] for i in order]
        self._references = [references[i] for i in order]
        self._share = share
        self._began: float | None = None
        self._spent = 0.0
        self._expected = 0.0  # seconds for all translations, as far as is known

    @property
    def spent(self) -> float:
        """Seconds that translating has taken so far."""
        return self._spent

    def on_train_begin(self, logs: Logs = None) -> None:
        if self._began is None:
            self._began = time.monotonic()

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        start = time.monotonic()
        began = start if self._began is None else self._began
        allowed = self._share * (start - began) - self._spent
        if logs is None or self._expected > allowed:
            return
        translations: list[str] = []
        for first in range(0, len(self._sources), self.CHUNK):
            chunk = self._sources[first : first + self.CHUNK]
            translations += self._translate(chunk)
            seconds = time.monotonic() - start
            self._expected = seconds * len(self._sources) / len(translations)
            if seconds > allowed:
                break
        self._spent += time.monotonic() - start
        if len(translations) == len(self._sources):
            logs["val_bleu"] = self._corpus_score(translations)


class BestModel(StatefulCallback):
    """Keeps the model of the best validation as a model folder.

    Args:
        directory: folder that `save_model` writes.
        monitor: entry of the logs; higher is better for `val_bleu`, lower for all
            others.
        progress: where the run stands.
        tokenizer: saved with the model, or None.

    Attributes:
        best: best value so far, or None.
        best_step: the step of that value.
        best_monitor: the metric of that value, which is another one than `monitor`
            until the best model of a resumed run is scored anew.
    """

    def __init__(
        self,
        directory: Path,
        monitor: str,
        progress: Progress,
        tokenizer: Tokenizer | None,
    ) -> None:
        super().__init__()
        self._directory = directory
        self._monitor = monitor
        self._progress = progress
        self._tokenizer = tokenizer
        self.best: float | None = None
        self.best_step = 0
        self.best_monitor = monitor

    def get_state(self) -> dict[str, Any]:
        return {
            "monitor": self._monitor,
            "best": self.best,
            "best_step": self.best_step,
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        self.best_monitor = state["monitor"]
        self.best, self.best_step = state["best"], state["best_step"]
        if self.best is not None and not self._directory.is_dir():
            print(
                f"{self._directory} is missing; the next validation writes it again.",
                file=sys.stderr,
            )
            self.best = None

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        value = (logs or {})[self._monitor]
        if is_better(self._monitor, value, self.best):
            save_model(self.model, self._directory, self._tokenizer)
            self.best, self.best_step = float(value), self._progress.step


class EarlyStopping(keras.callbacks.Callback):
    """Ends the run when the validation has not improved for some periods.

    Unlike that of Keras it counts over `fit` calls and resumes: from the step of the
    best model, which every state has.

    Args:
        patience: updates without improvement after which training ends.
        best: keeps the best model; comes before this callback.
        progress: where the run stands.
    """

    def __init__(self, patience: int, best: BestModel, progress: Progress) -> None:
        super().__init__()
        self._patience = patience
        self._best = best
        self._progress = progress

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        if self._progress.step - self._best.best_step >= self._patience:
            self.model.stop_training = True


def is_better(monitor: str, value: float, best: float | None) -> bool:
    """Whether a value of the monitored metric improves on the best one so far."""
    if not math.isfinite(value):
        return False
    if best is None:
        return True
    return value > best if monitor == "val_bleu" else value < best
