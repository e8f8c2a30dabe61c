"""Training of a model, or of a preset on a corpus: one call starts and resumes it."""

import contextlib
import copy
import os
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

import keras

from keras_attnvariants.backend import keep_programs
from keras_attnvariants.backend.distribution import in_first_process
from keras_attnvariants.backend.distribution import process_count
from keras_attnvariants.data import Corpus
from keras_attnvariants.data import Tokenizer
from keras_attnvariants.data import tasks
from keras_attnvariants.presets import Preset
from keras_attnvariants.presets.preset import attention_layers
from keras_attnvariants.training.callbacks import StopRequest
from keras_attnvariants.training.fine_tuning import FineTuning
from keras_attnvariants.training.guided_alignment import guided
from keras_attnvariants.training.progress import ProgressBar
from keras_attnvariants.training.run_folder import TrainingResult
from keras_attnvariants.training.run_settings import describe_run
from keras_attnvariants.training.run_settings import read_settings
from keras_attnvariants.training.run_settings import run_precision
from keras_attnvariants.training.run_settings import run_tokenizer
from keras_attnvariants.training.several_devices import lock_run
from keras_attnvariants.training.several_devices import make_run_folder
from keras_attnvariants.training.state import assign_arrays
from keras_attnvariants.training.state import to_arrays
from keras_attnvariants.training.time_limits import TimeLimit
from keras_attnvariants.training.time_limits import started_limit
from keras_attnvariants.training.training_config import TrainingConfig
from keras_attnvariants.training.training_config import config_for_corpus
from keras_attnvariants.training.training_config import describe_data
from keras_attnvariants.training.training_config import preset_settings
from keras_attnvariants.training.training_loop import TrainingLoop
from keras_attnvariants.training.validation import greedy_callbacks
from keras_attnvariants.utils.caches import default_cache
from keras_attnvariants.utils.checks import check_integer
from keras_attnvariants.utils.checks import check_optional_integer

if TYPE_CHECKING:
    from keras_attnvariants.data import TokenizedCorpus


def train(
    model: keras.Model,
    tokenizer: Tokenizer | None,
    training_data: Callable[[int], Any],
    run_dir: str | Path,
    config: TrainingConfig,
    *,
    validation_data: Any = None,
    metrics: Sequence[keras.metrics.Metric] = (),
    callbacks: Sequence[keras.callbacks.Callback] = (),
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
        model: Keras model from `{"source_ids", "target_ids"}` (or other inputs that the
            data gives) to logits `[B, T, V]`. On return it has the last weights.
        tokenizer: saved with the models, or None.
        training_data: called with a number `i`, it returns the endless dataset of
            batches `(inputs, labels, weights)` that starts at batch `i`. Batch `i` must
            depend on `i` only. With `accumulate`, an update takes that many batches.
            With `alignment_weight`, inputs have `"alignments"`, bool `[B, T, S]`.
        run_dir: folder of the run.
        config: settings; see `TrainingConfig`.
        validation_data: finite dataset of such batches, for `val_loss`.
        metrics: further Keras metrics, weighted by real tokens.
        callbacks: further Keras callbacks; a `StatefulCallback` is resumed as well, a
            `TimeLimit` ends the run when its time is up, and `ValidationScore` computes
            a score such as `val_bleu`.
        verbose: `"auto"` for a `ProgressBar` of the whole run; any other value is that
            of `fit`, 0 for none.

    The best model is the one with the best such score; without a `ValidationScore`,
    with the lowest `val_loss`; without any validation, with the lowest training loss.

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
              callbacks=[ValidationScore(translator.translate, sources, references)])
    """
    run_dir, limit = Path(run_dir), started_limit(callbacks)
    bar = contextlib.nullcontext()
    if verbose == "auto" and not any(isinstance(c, ProgressBar) for c in callbacks):
        bar = ProgressBar(config.steps, limit)
        callbacks = [bar, *callbacks]  # its line about a validation comes first
    with lock_run(run_dir), StopRequest() as request, guided(model, config), bar:
        loop = TrainingLoop(
            model, config, training_data, validation_data, metrics, verbose
        )
        folder = make_run_folder(run_dir, loop, tokenizer, callbacks, request)
        state, callbacks = folder.open(describe_run(model, tokenizer, config))
        if state is not None:
            loop.start(state)
        if not loop.is_done and in_first_process(lambda: limit is not None):
            # Other processes may have no limit.
            (limit or TimeLimit(1.0)).measure(loop.evaluate)
        loop.run(callbacks)
        last = to_arrays(model.weights)
        assign_arrays(model.weights, folder.averages(), "weight")
        result = folder.finish(loop.evaluate())
        assign_arrays(model.weights, last, "weight")
        return result


def train_preset(
    preset: Preset,
    corpus: Corpus,
    run_dir: str | os.PathLike[str],
    *,
    fine_tuning: FineTuning | None = None,
    tokenizer: Tokenizer | None = None,
    vocabulary_size: int | None = None,
    subwords: Mapping[str, Any] | None = None,
    batch_tokens: int | None = None,
    sizes: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
    precision: str = "auto",
    seed: int = 1,
    score_sentences: int | None = None,
    samples: int = 2,
    callbacks: Sequence[keras.callbacks.Callback] = (),
    verbose: int | str = "auto",
) -> TrainingResult:
    """Trains a preset on a corpus, or continues the run that the folder holds.

    A joint vocabulary is learned first, unless the cache has it. Everything is written
    into one folder; see `train` for its files and for how runs are resumed.

    Args:
        preset: the model to train, and how to train it.
        corpus: has a split "train". If it has a split "validation", the model is
            validated on it.
        run_dir: folder of the run.
        fine_tuning: the trained model that the run begins with, and the parts to train.
            The run has its vocabulary, and its sizes unless `sizes` has others. A
            preset with other attention begins with the weights that fit.
        tokenizer: tokenizer to use instead of learning a vocabulary.
        vocabulary_size: number of tokens in the joint vocabulary; `None` for that of
            the preset, or fewer if the training text has no more.
        subwords: `model_type` and `character_coverage` of `Tokenizer.train`, if not the
            defaults.
        batch_tokens: source and target positions of one update; `None` for those of the
            preset, or, if it counts sentence pairs, for as many pairs of mean length.
        sizes: options of the model that replace those of the preset; see
            `Preset.build`. A `length_ratio` that the model, or a layer here, needs is
            computed from the corpus unless it is given here.
        settings: fields of `TrainingConfig` that replace those of the preset. The
            `steps` of a preset with epochs are as many passes over the corpus. If the
            corpus has alignments, `alignment_weight` is 0.05 by default.
        precision: dtype policy of the model, or `"auto"` for the faster one.
        seed: determines the weights, dropout and the order of the batches.
        score_sentences: number of validation sources that are decoded greedily in each
            validation. If positive, the best model is the one with the highest BLEU, or
            the best first metric of another task. `None` decodes 200 at those
            validations where that takes at most 5 % of the measured time; the best
            model is then the one with the lowest loss.
        samples: number of validation sources whose outputs are shown at each
            validation.
        callbacks: further Keras callbacks, such as a `TimeLimit`.
        verbose: as for `train`: by default a progress bar of the whole run.

    Raises:
        ValueError: an argument is out of range, the corpus has no split "train", or
            the folder holds a run with other settings, or a file of it is damaged.
        FolderInUseError: another process trains in the folder.

    Example:

    ```python
    corpus = kav.data.load_corpus("multi30k", "en", "de")
    preset = kav.presets.get("kav/hc-sa/multi30k")
    kav.training.train_preset(preset, corpus, "runs/hc-sa")
    model, tokenizer = kav.training.load_run("runs/hc-sa")
    ```
    """
    started_limit(callbacks)
    run_dir = Path(run_dir)
    check_optional_integer("score_sentences", score_sentences, minimum=0)
    check_integer("samples", samples, minimum=0)
    data = {"batch_tokens": batch_tokens, "seed": seed}
    given = dict(precision=precision, data=data, **(settings or {}))
    model, tokens, config = build_run(
        preset,
        corpus,
        run_dir,
        vocabulary_size,
        subwords or {},
        sizes or {},
        given,
        fine_tuning,
        tokenizer,
    )
    positions, tokenizer = config.data["batch_tokens"], tokens.tokenizer
    plan = tokens.plan("train", positions, seed)
    if plan.num_skipped and verbose:
        print(plan.report)
    validation_data = None
    if "validation" in corpus.splits:
        validation_data = tokens.validation_dataset(positions, seed=seed)
        greedy = greedy_callbacks(
            model, tokenizer, corpus, score_sentences, samples, config.bleu_tokenize
        )
        callbacks = [*greedy, *callbacks]
    result = train(
        model,
        tokenizer,
        lambda step: tokens.training_dataset(positions, seed, start_step=step),
        run_dir,
        config,
        validation_data=validation_data,
        callbacks=callbacks,
        verbose=verbose,
    )
    # Models are loaded by all processes or by none, and the others have no folder.
    if fine_tuning is not None and process_count() == 1:
        fine_tuning.write_adapter(run_dir, preset.name)
    return result


def build_run(
    preset: Preset,
    corpus: Corpus,
    run_dir: Path,
    vocabulary_size: int | None,
    subwords: Mapping[str, Any],
    sizes: Mapping[str, Any],
    given: dict[str, Any],
    fine_tuning: FineTuning | None = None,
    tokenizer: Tokenizer | None = None,
) -> tuple[keras.Model, "TokenizedCorpus", TrainingConfig]:
    """Builds the model of a run, tokenizes its corpus, and completes its settings.

    Errors in the arguments are raised before a tokenizer is trained, which may take
    minutes.

    Args:
        preset, corpus, run_dir, vocabulary_size, subwords, sizes: as in `train_preset`.
        given: fields of `TrainingConfig`, with these arguments of `train_preset`:
            `precision`, and in `data`, `batch_tokens` and `seed`.
        fine_tuning, tokenizer: as in `train_preset`.
    """
    # Imports TensorFlow.
    from keras_attnvariants.data import TokenizedCorpus

    check_task(preset, corpus.task, fine_tuning)
    positions, seed = given["data"]["batch_tokens"], given["data"]["seed"]
    check_optional_integer("batch_tokens", positions)
    check_optional_integer("vocabulary_size", vocabulary_size)
    keep_programs(default_cache() / "programs")
    tokenizer = given_tokenizer(fine_tuning, tokenizer, vocabulary_size, subwords)
    if fine_tuning is not None:
        sizes = {**fine_tuning.sizes(preset), **sizes}
    size = vocabulary_size if tokenizer is None else tokenizer.target.vocabulary_size
    preset.check(size, **sizes)
    saved = in_first_process(lambda: read_settings(run_dir))
    if given["precision"] == "auto":
        given["precision"] = in_first_process(lambda: run_precision(saved))
    data = {"batch_tokens": positions or preset.training.batch_tokens, "seed": seed}
    given["data"] = describe_data(preset, corpus, subwords) | data
    if fine_tuning is not None:
        given["data"] |= fine_tuning.describe()
    config = TrainingConfig(**preset_settings(preset, corpus) | given)
    if tokenizer is None:
        size = vocabulary_size or preset.options["vocabulary_size"]
        may_shrink = vocabulary_size is None
        tokenizer = run_tokenizer(run_dir, saved, corpus, size, subwords, may_shrink)
    tokenizer = tasks.get(corpus.task).tokenizer(tokenizer)
    longest = {**preset.config, **sizes}.get("max_length", 512)
    limit = min(longest, tasks.get(corpus.task).max_length)
    tokens = TokenizedCorpus(
        corpus, tokenizer, max_length=limit, batches_per_shape=config.batches_per_shape
    )
    chosen = [*given, *(["batch_tokens"] if positions else [])]
    config = config_for_corpus(config, preset, tokens, chosen)
    sizes = with_length_ratio(sizes, preset, tokens)
    keras.utils.set_random_seed(seed)
    if tokenizer.target is not tokenizer:
        sizes = {"source_vocabulary_size": tokenizer.vocabulary_size, **sizes}
    size = tokenizer.target.vocabulary_size
    # A model may continue with a task other than its own.
    sizes = {**sizes, "task": corpus.task}
    model = preset.build(size, dtype=config.precision, **sizes)
    if fine_tuning is not None:
        taken = fine_tuning.start(model)
        if not saved:
            print(f"Weights of {fine_tuning.model}:\n{taken}")
    return model, tokens, config


def with_length_ratio(
    sizes: Mapping[str, Any], preset: Preset, tokens: "TokenizedCorpus"
) -> Mapping[str, Any]:
    """Sizes of a model with the length ratio of a corpus where it needs one."""
    sizes = copy.deepcopy(dict(sizes))
    if "length_ratio" in preset.options:
        sizes = {"length_ratio": tokens.length_ratio(), **sizes}
    for layer in attention_layers(sizes):
        name = isinstance(layer, dict) and layer["class_name"]
        kind = keras.saving.get_registered_object(name)
        if kind and "length_ratio" in signature(kind).parameters:
            layer["config"].setdefault("length_ratio", tokens.length_ratio())
    return sizes


def check_task(preset: Preset, task: str, fine_tuning: FineTuning | None) -> None:
    """Raises unless the model of a run can read the sources of a task.

    Raises:
        ValueError: one has texts and the other recordings.
    """
    subject: tuple[Any, str] = preset, preset.name
    if fine_tuning is not None and fine_tuning.keep_architecture:
        subject = fine_tuning.trained.model, str(fine_tuning.model)
    tasks.get(task).check(*subject)


def given_tokenizer(
    fine_tuning: FineTuning | None,
    tokenizer: Tokenizer | None,
    vocabulary_size: int | None,
    subwords: Mapping[str, Any],
) -> Tokenizer | None:
    """The tokenizer given to a run; `None` if the run learns a vocabulary.

    Raises:
        ValueError: the arguments, which are those of `train_preset`, exclude each
            other.
    """
    if fine_tuning is not None:
        if tokenizer is not None:
            raise ValueError(
                "`tokenizer` must not be given with `fine_tuning`: the weights of a "
                "model belong to its own vocabulary."
            )
        tokenizer = fine_tuning.trained.tokenizer
    own = None if tokenizer is None else tokenizer.vocabulary_size
    if own is not None and (vocabulary_size not in (None, own) or subwords):
        raise ValueError(
            "`vocabulary_size` and `subwords` describe a vocabulary to learn: leave "
            "them out with a trained model or `tokenizer`. Received: "
            f"{vocabulary_size}, {dict(subwords)}"
        )
    return tokenizer
