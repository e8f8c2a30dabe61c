"""Training a model in the folder of a run: one call starts, resumes and finishes it."""

import contextlib
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import keras
from keras import ops

from keras_attnvariants import backend
from keras_attnvariants.backend import accumulating_train_function
from keras_attnvariants.backend.distribution import in_first_process
from keras_attnvariants.data.tokenizer import Tokenizer
from keras_attnvariants.training.config import TrainingConfig
from keras_attnvariants.training.devices import check_devices
from keras_attnvariants.training.devices import on_devices
from keras_attnvariants.training.devices import weigh_rows_that_count
from keras_attnvariants.training.folder import TrainingResult
from keras_attnvariants.training.folder import clear_full_disk
from keras_attnvariants.training.guiding import check_alignments
from keras_attnvariants.training.guiding import guided
from keras_attnvariants.training.loop import Training
from keras_attnvariants.training.loop import TrainingLoop
from keras_attnvariants.training.losses import LabelSmoothedCrossEntropy
from keras_attnvariants.training.losses import token_weights
from keras_attnvariants.training.metrics import Perplexity
from keras_attnvariants.training.metrics import TokenCount
from keras_attnvariants.training.processes import folder_of
from keras_attnvariants.training.processes import locked
from keras_attnvariants.training.progress import with_progress_bar
from keras_attnvariants.training.settings import describe_run
from keras_attnvariants.training.settings import read_settings
from keras_attnvariants.training.signals import StopRequest
from keras_attnvariants.training.state import assign_arrays
from keras_attnvariants.training.state import to_arrays


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
    training = Training(
        model,
        tokenizer,
        training_data,
        config,
        validation_data,
        validation_texts,
        translate,
        metrics,
        callbacks,
        verbose,
    )
    with open_run(Path(run_dir)) as saved:
        return train_in(Path(run_dir), saved, training, resume)


@contextlib.contextmanager
def open_run(run_dir: Path) -> Iterator[dict[str, Any]]:
    """Context in which no other training writes into a folder; gives its settings."""
    with clear_full_disk(run_dir), locked(run_dir):
        yield in_first_process(lambda: read_settings(run_dir))


def train_in(
    run_dir: Path, saved: dict[str, Any], training: Training, resume: bool = True
) -> TrainingResult:
    """Trains in a folder that is open.

    Args:
        run_dir: folder of the run.
        saved: settings of the run that it holds, or an empty dict.
        training: what is trained.
        resume: False refuses a folder that already has a state.
    """
    model, config = training.model, training.config
    check_devices(model)
    training = on_devices(training)
    with (
        StopRequest() as request,
        _with_bar(training) as callbacks,
        guided(model, config),
    ):
        loop = TrainingLoop(training, _compile(training))
        folder = folder_of(run_dir, training, loop, request)
        settings = describe_run(model, training.tokenizer, config)
        state = folder.open(saved, settings, resume)
        callbacks = folder.start(state, callbacks)
        loop.start(state)
        loop.run(callbacks)
        model.train_function = None  # the caller may `fit` it in another way
        last = to_arrays(model.weights)
        assign_arrays(model.weights, folder.averages(), "weight")
        result = folder.finish(loop.evaluate())
        assign_arrays(model.weights, last, "weight")
        return result


def _with_bar(
    training: Training,
) -> contextlib.AbstractContextManager[Sequence[keras.callbacks.Callback]]:
    """Context with the callbacks of a run, and with a progress bar if wanted."""
    if training.verbose == "auto":
        return with_progress_bar(training.callbacks, training.config.steps)
    return contextlib.nullcontext(training.callbacks)


def _compile(training: Training) -> int:
    """Compile, and create every variable that a saved state is loaded into.

    Returns:
        The number of classes, which is the last axis of the logits.
    """
    model, config = training.model, training.config
    pad_id = getattr(model, "pad_id", 0)
    model.compile(
        optimizer=config.optimizer(),
        loss=LabelSmoothedCrossEntropy(config.label_smoothing, pad_id),
        weighted_metrics=[
            Perplexity(pad_id=pad_id),
            TokenCount(pad_id=pad_id),
            *training.metrics,
        ],
        jit_compile=config.jit_compile or backend.name() == "jax",
    )
    count_rows = weigh_rows_that_count(model)
    batch = next(iter(training.data(0)))
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
