"""Callbacks at the end of a period: BLEU, best model, early stopping."""

import math
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import keras
from sacrebleu.metrics import BLEU

from keras_attnvariants.models import save_model
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
        ValueError: there are no texts, or not one reference for each source.
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
                "validation texts must be as many sources as references, and some. "
                f"Received: {len(sources)} sources, {len(references)} references"
            )
        self._translate = translate
        self._sources = list(sources)
        self._references = list(references)
        self._bleu = BLEU(tokenize=tokenize)

    def score(self) -> float:
        """BLEU of the model as it is now."""
        translations = list(self._translate(self._sources))
        return self._bleu.corpus_score(translations, [self._references]).score

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        # Callbacks that follow read it here, as they read Keras' own metrics.
        logs["val_bleu"] = self.score()


class BestModel(StatefulCallback):
    """Keeps the model of the best validation as a model folder.

    Args:
        directory: folder that `save_model` writes.
        monitor: entry of the logs; more is better for `val_bleu`, else less is.
        progress: the place of the run.
        tokenizer: saved with the model, or None.

    Attributes:
        best: best value so far, or None.
        best_step: the step that it belongs to.
    """

    def __init__(
        self, directory: Path, monitor: str, progress: Progress, tokenizer: Any
    ) -> None:
        super().__init__()
        self._directory = directory
        self._monitor = monitor
        self._progress = progress
        self._tokenizer = tokenizer
        self.best: float | None = None
        self.best_step = 0

    def get_state(self) -> dict[str, Any]:
        return {"best": self.best, "best_step": self.best_step}

    def set_state(self, state: Mapping[str, Any]) -> None:
        self.best, self.best_step = state["best"], state["best_step"]

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        value = logs[self._monitor]
        if is_better(self._monitor, value, self.best):
            save_model(self.model, self._directory, self._tokenizer)
            self.best, self.best_step = float(value), self._progress.step


class EarlyStopping(StatefulCallback):
    """Ends the run when the validation has not improved for some periods.

    Unlike that of Keras it keeps its count over `fit` calls and in saved states.

    Args:
        monitor: entry of the logs; more is better for `val_bleu`, else less is.
        patience: periods without improvement after which training ends.
        progress: the place of the run.
    """

    def __init__(self, monitor: str, patience: int, progress: Progress) -> None:
        super().__init__()
        self._monitor = monitor
        self._patience = patience
        self._progress = progress
        self._best: float | None = None
        self._waited = 0

    def get_state(self) -> dict[str, Any]:
        return {"best": self._best, "waited": self._waited}

    def set_state(self, state: Mapping[str, Any]) -> None:
        self._best, self._waited = state["best"], state["waited"]

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        value = logs[self._monitor]
        self._waited += 1
        if is_better(self._monitor, value, self._best):
            self._best, self._waited = float(value), 0
        if self._waited >= self._patience:
            self._progress.stopped = self.model.stop_training = True


def is_better(monitor: str, value: float, best: float | None) -> bool:
    """Whether a value of the monitored metric improves on the best one so far."""
    if not math.isfinite(value):
        return False
    if best is None:
        return True
    return value > best if monitor == "val_bleu" else value < best
