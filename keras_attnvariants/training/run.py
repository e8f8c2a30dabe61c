"""A training run in one folder: one call starts, resumes and finishes it."""

import contextlib
import errno
import json
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import keras
from keras import ops

from keras_attnvariants import backend
from keras_attnvariants.backend import accumulating_train_function
from keras_attnvariants.data.model_folders import TOKENIZER
from keras_attnvariants.data.tokenizer import Tokenizer
from keras_attnvariants.training.config import TrainingConfig
from keras_attnvariants.training.devices import check_devices
from keras_attnvariants.training.devices import current_team
from keras_attnvariants.training.devices import divided
from keras_attnvariants.training.devices import weigh_existing_rows
from keras_attnvariants.training.guiding import check_alignments
from keras_attnvariants.training.guiding import guided
from keras_attnvariants.training.loop import TrainingLoop
from keras_attnvariants.training.loop import TrainingResult
from keras_attnvariants.training.losses import LabelSmoothedCrossEntropy
from keras_attnvariants.training.losses import token_weights
from keras_attnvariants.training.metrics import Perplexity
from keras_attnvariants.training.metrics import TokenCount
from keras_attnvariants.training.progress import with_progress_bar
from keras_attnvariants.training.settings import CONFIG
from keras_attnvariants.training.settings import STATES
from keras_attnvariants.training.settings import check_same_run
from keras_attnvariants.training.settings import describe_model
from keras_attnvariants.training.settings import read_settings
from keras_attnvariants.training.signals import StopRequest
from keras_attnvariants.training.state import LoadedState
from keras_attnvariants.training.state import StateWriteError
from keras_attnvariants.training.state import TrainingState
from keras_attnvariants.training.validation import ValidationBLEU
from keras_attnvariants.utils.files import write_file
from keras_attnvariants.utils.folders import remove_leftovers

# The errors of a disk, a quota and a file that are full.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def train(
    model: keras.Model,
    tokenizer: Tokenizer | None,
    training_data: Callable[[int], Any],
    run_dir: str | Path,
    config: TrainingConfig,
    *,
    validation_data: Any = None,
    validation_texts: tuple[Sequence[str], Sequence[str]] | None = None,
    translate: Callable[[list[str]], Sequence[str]] | None = None,
    metrics: Sequence[keras.metrics.Metric] = (),
    callbacks: Sequence[keras.callbacks.Callback] = (),
    resume: bool = True,
    verbose: int | str = "auto",
) -> TrainingResult:
    """Trains a model with Keras' `fit`; the run can be killed and resumed exactly.

    The run is one folder:

        config.json       settings of the run and configuration of the model
        tokenizer.model   if there is a tokenizer
        log.jsonl         one JSON object a line, see `JsonLinesLogger`
        tensorboard/      the same for TensorBoard, if that package is installed
        state/            the last two states: weights, optimizer, seeds, position
        checkpoints/      weights of the last validated steps
        lock.json         who trains in the folder now, see `lock_folder`
        best/             model of the best validation, a model folder, see `save_model`
        averaged/         model with the mean of the last validated weights

    Called again after a kill, a signal, a full disk or a power cut, it continues from
    the last intact state: with the same updates on the same batches with the same
    dropout, on a CPU with bit-equal results. SIGTERM and SIGINT end the process with
    status 143 and 130, at most one update later, with the state saved.

    A callback that sets `stop_training` of the model, such as `EarlyStopping` of Keras,
    ends the run after the update, with a last validation. Such a run continues when
    `steps` or `patience` of the configuration change.

    Args:
        model: Keras model from `{"source_ids", "target_ids"}` (or whatever the data
            gives) to logits `[B, T, V]`. On return it has the last weights.
        tokenizer: saved with the models, or None.
        training_data: gives the endless dataset of batches `(inputs, labels, weights)`
            that starts at batch number `step`. Batch `i` must depend on `i` only.
            With `accumulate` an update takes as many batches. With `alignment_weight`
            their inputs have `"alignments"`, bool `[B, T, S]`.
        run_dir: folder of the run.
        config: settings; see `TrainingConfig`.
        validation_data: finite dataset of such batches, for `val_loss`.
        validation_texts: source texts and reference translations, for `val_bleu`.
        translate: maps source texts to translations by this model, such as
            `Translator.translate`. Needed with `validation_texts`.
        metrics: further Keras metrics, weighted by real tokens.
        callbacks: further Keras callbacks; a `StatefulCallback` is resumed as well, and
            a `TimeLimit` ends the run when its time is up.
        resume: False refuses a folder that already has a state.
        verbose: `"auto"` for a `ProgressBar` of the whole run; any other value is that
            of `fit`, 0 for none.

    The best model is that of the highest `val_bleu`; without validation texts, of the
    lowest `val_loss`; without any validation, of the lowest training loss.

    Raises:
        ValueError: an argument is wrong, or the folder holds a run with other settings.
        NonFiniteError: the loss or a weight became NaN or infinite.
        DivergedError: after a period the loss was far above that of a uniform guess.
        StateWriteError: the disk is full. The last state is kept; free some space and
            call again.
        FolderInUseError: another process trains in the folder.
        SystemExit: after SIGTERM or SIGINT.

    Example:

        config = TrainingConfig(steps=20_000, learning_rate=NoamSchedule(512))
        train(model, tokenizer, dataset_at, "runs/first", config,
              validation_texts=(sources, references), translate=translator.translate)
    """
    run_dir = Path(run_dir)
    team = current_team()
    check_devices(model)
    _check_precision(model, config)
    bleu = _validation_bleu(translate, validation_texts, config)
    store = TrainingState(run_dir / STATES)
    if not team.writes:
        callbacks, verbose = (), 0
    with (
        clear_full_disk(run_dir),
        team.lock(run_dir),
        StopRequest() as request,
        _with_bar(callbacks, config, verbose) as callbacks,
        guided(model, config),
    ):
        settings = _settings(model, tokenizer, config)
        team.check_same(settings)
        classes = _compile(model, config, metrics, training_data)
        state = None
        if team.writes:
            state = _open_run(run_dir, store, settings, tokenizer, resume)
        state = team.shared_state(state)
        loop = TrainingLoop(
            model,
            tokenizer,
            lambda step: divided(training_data(step)),
            run_dir,
            config,
            store=store,
            request=request,
            validation_data=divided(validation_data),
            bleu=bleu if team.writes else None,
            classes=classes,
            callbacks=callbacks,
            verbose=0 if verbose == "auto" else verbose,
            team=team,
        )
        loop.start(state)
        loop.run()
        return loop.finish()


@contextlib.contextmanager
def clear_full_disk(run_dir: Path) -> Iterator[None]:
    """Context in which a full disk is told with the folder, and with what to do."""
    try:
        yield
    except StateWriteError:
        raise
    except OSError as error:
        if error.errno not in FULL:
            raise
        raise StateWriteError(
            error.errno,
            f"{run_dir} could not be written ({error.strerror}); free some space and "
            "give the same command again: the run continues from its last state",
        ) from error


def _check_precision(model: keras.Model, config: TrainingConfig) -> None:
    if model.dtype_policy.name != config.precision:
        raise ValueError(
            "`config.precision` must be the dtype policy of the model. It is "
            f"{config.precision!r}. "
            f"Received: a model of policy {model.dtype_policy.name!r}"
        )


def _with_bar(
    callbacks: Sequence[keras.callbacks.Callback],
    config: TrainingConfig,
    verbose: int | str,
) -> contextlib.AbstractContextManager[Sequence[keras.callbacks.Callback]]:
    """Context with the callbacks of a run, and with a progress bar if wanted."""
    if verbose == "auto":
        return with_progress_bar(callbacks, config.steps)
    return contextlib.nullcontext(callbacks)


def _validation_bleu(
    translate: Callable[[list[str]], Sequence[str]] | None,
    texts: tuple[Sequence[str], Sequence[str]] | None,
    config: TrainingConfig,
) -> ValidationBLEU | None:
    if translate is None and texts is None:
        return None
    if translate is None or texts is None:
        missing = "translate" if translate is None else "validation_texts"
        raise ValueError(
            "`translate` and `validation_texts` must be given together. "
            f"Received: no `{missing}`"
        )
    return ValidationBLEU(translate, *texts, tokenize=config.bleu_tokenize)


def _compile(
    model: keras.Model,
    config: TrainingConfig,
    metrics: Sequence[keras.metrics.Metric],
    training_data: Callable[[int], Any],
) -> int:
    """Compile, and create every variable that a saved state is loaded into.

    Returns:
        The number of classes, which is the last axis of the logits.
    """
    pad_id = getattr(model, "pad_id", 0)
    model.compile(
        optimizer=config.optimizer(),
        loss=LabelSmoothedCrossEntropy(config.label_smoothing, pad_id),
        weighted_metrics=[
            Perplexity(pad_id=pad_id),
            TokenCount(pad_id=pad_id),
            *metrics,
        ],
        jit_compile=config.jit_compile or backend.name() == "jax",
    )
    count_rows = weigh_existing_rows(model)
    batch = next(iter(training_data(0)))
    batch = keras.tree.map_structure(lambda x: x[:1], batch)
    inputs, labels, weights = keras.utils.unpack_x_y_sample_weight(batch)
    check_alignments(config, inputs)
    logits = model(inputs, training=False)
    model.compute_metrics(inputs, labels, logits, weights)
    model.reset_metrics()
    model.optimizer.build(model.trainable_variables)
    if config.accumulate > 1:
        model.train_function = accumulating_train_function(
            model,
            config.accumulate,
            lambda labels, weights: ops.sum(token_weights(labels, pad_id, weights)),
            count_rows,
        )
    return int(logits.shape[-1])


def _settings(
    model: keras.Model, tokenizer: Tokenizer | None, config: TrainingConfig
) -> dict[str, Any]:
    """What a run is told by, as JSON."""
    return {
        "training": config.to_dict(),
        "model": describe_model(model),
        "tokenizer": None if tokenizer is None else tokenizer.sha256,
    }


def _open_run(
    run_dir: Path,
    store: TrainingState,
    settings: dict[str, Any],
    tokenizer: Tokenizer | None,
    resume: bool,
) -> LoadedState | None:
    """Write the settings and the tokenizer; return the state to continue from."""
    saved: dict[str, Any] = {}
    if store.paths():
        if not resume:
            raise ValueError(
                "`run_dir` must not hold a run: pass `resume=True` to continue it, "
                f"or choose another folder. Received: {run_dir}"
            )
        saved = read_settings(run_dir)
        check_same_run(run_dir, saved, settings)
    state = store.load_latest()
    if state is not None and any(
        saved["training"].get(name) != settings["training"][name]
        for name in ("steps", "patience")
    ):
        state.progress["stopped"] = False
    write_file(run_dir / CONFIG, (json.dumps(settings, indent=2) + "\n").encode())
    if tokenizer is not None:
        write_file(run_dir / TOKENIZER, tokenizer.model_bytes)
    remove_leftovers(run_dir)
    return state
