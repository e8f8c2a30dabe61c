"""A preset on a corpus: from the files to a trained model in the folder of a run."""

import hashlib
import json
import os
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import keras

from keras_attnvariants.backend import keep_programs
from keras_attnvariants.backend.distribution import in_first_process
from keras_attnvariants.data import Corpus
from keras_attnvariants.data import Tokenizer
from keras_attnvariants.data.model_folders import TOKENIZER
from keras_attnvariants.data.model_folders import LoadedModel
from keras_attnvariants.data.model_folders import load_model
from keras_attnvariants.data.vocabularies import learn_vocabulary
from keras_attnvariants.decoding import Translator
from keras_attnvariants.presets import Preset
from keras_attnvariants.training.config import TrainingConfig
from keras_attnvariants.training.folder import AVERAGED
from keras_attnvariants.training.folder import BEST
from keras_attnvariants.training.folder import LOG
from keras_attnvariants.training.folder import TrainingResult
from keras_attnvariants.training.loop import Training
from keras_attnvariants.training.precision import faster_precision
from keras_attnvariants.training.run import open_run
from keras_attnvariants.training.run import train_in
from keras_attnvariants.training.samples import translations_to_read
from keras_attnvariants.training.settings import Difference
from keras_attnvariants.training.settings import DifferentSettingsError
from keras_attnvariants.training.units import on_corpus
from keras_attnvariants.utils.caches import default_cache
from keras_attnvariants.utils.caches import remembered_entry
from keras_attnvariants.utils.checks import check_integer
from keras_attnvariants.utils.checks import check_optional_integer
from keras_attnvariants.utils.files import DamagedFolderError

# Options of `Tokenizer.train` that a run takes, with their defaults.
SUBWORDS = {"model_type": "unigram", "character_coverage": 1.0}
# Of the loss that follows the alignments of a corpus (Garg et al. 2019).
ALIGNMENT_WEIGHT = 0.05


def train_preset(
    preset: Preset,
    corpus: Corpus,
    run_dir: str | os.PathLike[str],
    *,
    vocabulary_size: int | None = None,
    subwords: Mapping[str, Any] | None = None,
    batch_tokens: int | None = None,
    sizes: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
    precision: str = "auto",
    seed: int = 1,
    bleu_sentences: int | None = None,
    samples: int = 2,
    callbacks: Sequence[keras.callbacks.Callback] = (),
    verbose: int | str = "auto",
) -> TrainingResult:
    """Trains a preset on a corpus, or continues the run that the folder holds.

    A joint vocabulary is learned first, unless the cache has it. Everything is written
    into one folder; see `train` for its files and for how runs are resumed.

    Args:
        preset: what to train, and how.
        corpus: has a split "train". If it has a split "validation", the model is
            validated on it.
        run_dir: folder of the run.
        vocabulary_size: number of tokens in the joint vocabulary; `None` for that of
            the preset.
        subwords: `model_type` and `character_coverage` of `Tokenizer.train`, if they
            are not to be the defaults.
        batch_tokens: source and target positions of one update; `None` for those of
            the preset, or of as many mean pairs of the corpus as the preset has.
        sizes: options of the model that replace those of the preset; see
            `Preset.build`. A `length_ratio` that the model needs is computed from the
            corpus unless it is given here.
        settings: fields of `TrainingConfig` that replace those of the preset. The
            `steps` of a preset with epochs are as many passes over the corpus. If the
            corpus has alignments, `alignment_weight` is 0.05 by default.
        precision: dtype policy of the model, or `"auto"` for the faster one.
        seed: determines the weights, dropout and the order of the batches.
        bleu_sentences: number of validation sentences that are translated, greedily,
            in each validation. With any, the best model is the one of highest BLEU.
            `None` translates 200 at those validations where that keeps within 5 % of
            the time, as measured; the best model is then that of lowest loss.
        samples: number of validation sentences whose translations are shown at each
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
    # Imports TensorFlow.
    from keras_attnvariants.data import TokenizedCorpus

    run_dir = Path(run_dir)
    positions = preset.training.batch_tokens if batch_tokens is None else batch_tokens
    _check_counts(positions, vocabulary_size, bleu_sentences, samples)
    subwords, sizes, settings = (dict(x or {}) for x in (subwords, sizes, settings))
    keep_programs(default_cache() / "programs")
    # Before the tokenizer is trained, which may take minutes.
    preset.check(vocabulary_size, **sizes)
    with open_run(run_dir) as saved:
        if precision == "auto":
            precision = in_first_process(lambda: run_precision(saved))
        data = describe_data(preset, corpus, subwords)
        config = TrainingConfig(
            precision=precision,
            data={**data, "batch_tokens": positions, "seed": seed},
            **preset_settings(preset) | corpus_settings(corpus) | settings,
        )
        vocabulary_size = vocabulary_size or preset.options["vocabulary_size"]
        tokenizer = run_tokenizer(run_dir, saved, corpus, vocabulary_size, subwords)
        tokens = TokenizedCorpus(corpus, tokenizer)
        chosen = batch_tokens is not None, "steps" in settings
        config = on_corpus(config, preset, tokens, *chosen)
        positions = config.data["batch_tokens"]
        if "length_ratio" in preset.options:
            sizes.setdefault("length_ratio", tokens.length_ratio())
        keras.utils.set_random_seed(seed)
        model = preset.build(tokenizer.vocabulary_size, dtype=precision, **sizes)
        shown = translations_to_read(model, tokenizer, corpus, bleu_sentences, samples)
        training = Training(
            model,
            tokenizer,
            lambda step: tokens.training_dataset(positions, seed, start_step=step),
            config,
            callbacks=[*callbacks, *shown],
            verbose=verbose,
            **_validation(model, tokens, positions, seed, bleu_sentences),
        )
        return train_in(run_dir, saved, training)


def _check_counts(
    batch_tokens: int,
    vocabulary_size: int | None,
    bleu_sentences: int | None,
    samples: int,
) -> None:
    check_integer("batch_tokens", batch_tokens)
    check_optional_integer("vocabulary_size", vocabulary_size)
    check_optional_integer("bleu_sentences", bleu_sentences, minimum=0)
    check_integer("samples", samples, minimum=0)


def load_run(run_dir: str | os.PathLike[str]) -> LoadedModel:
    """Loads the better model of a run: that of the best validation, or the average.

    Averages of weights that still improve quickly are worse than the last of them.

    Args:
        run_dir: folder of a run of `train` or `train_preset`. It need not have ended.

    Returns:
        A `LoadedModel`, that is `(model, tokenizer)`.

    Raises:
        FileNotFoundError: the folder holds no run, or one without a validated model.
        ValueError: a file is not the one that was saved.
    """
    log = Path(run_dir) / LOG
    if not log.is_file():
        raise FileNotFoundError(
            f"`run_dir` must be the folder of a run, with {LOG}. Received: {run_dir}"
        )
    return load_model(Path(run_dir) / better_model(log))


def read_log(log: Path) -> list[dict[str, Any]]:
    """The records of a run's log.

    Raises:
        ValueError: a line is no record.
    """
    # The last line may be incomplete; all others end in a newline.
    lines = log.read_text("utf-8").split("\n")[:-1]
    events = []
    for number, line in enumerate(lines, start=1):
        try:
            event = json.loads(line)
            event["event"], event["step"]
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"Line {number} of {log} is no record of a log: remove it. "
                f"Received: {line!r:.80}"
            ) from error
        events.append(event)
    return events


def better_model(log: Path) -> str:
    """Which model of a run validated better, `"best"` or `"averaged"`."""
    events = read_log(log)
    averages = [event for event in events if event["event"] == "averaged"]
    # A run that was continued after its end has an average of old weights.
    if not averages:
        return BEST
    best_of: dict[str, Callable[..., float]] = {"val_bleu": max, "val_loss": min}
    for name, best in best_of.items():
        # A score that the average was not given has not chosen the best model.
        if name in averages[-1]:
            values = [event[name] for event in events if event.get(name) is not None]
            is_best = values and averages[-1][name] == best(values)
            return AVERAGED if is_best else BEST
    return AVERAGED


def preset_settings(preset: Preset) -> dict[str, Any]:
    """How a preset is trained, as arguments of `TrainingConfig`."""
    training = preset.training
    schedule = keras.optimizers.schedules.deserialize(dict(training.schedule))
    return {
        "steps": training.steps,
        "learning_rate": schedule,
        "label_smoothing": training.label_smoothing,
        "beta_1": training.beta_1,
        "beta_2": training.beta_2,
        "epsilon": training.epsilon,
        "average_last": training.averaged_checkpoints,
    }


def corpus_settings(corpus: Corpus) -> dict[str, Any]:
    """What a corpus asks for, as arguments of `TrainingConfig`."""
    return {} if corpus.alignments is None else {"alignment_weight": ALIGNMENT_WEIGHT}


def describe_data(
    preset: Preset, corpus: Corpus, subwords: Mapping[str, Any]
) -> dict[str, Any]:
    """What a run is trained on, so that it is not resumed on anything else.

    Sentences count by their content, not by the names of their files, and those of a
    test set not at all.

    Args:
        preset: its name is noted.
        corpus: its training and validation files are.
        subwords: options of the vocabulary, of which those are noted that are not the
            defaults.
    """
    options = {k: v for k, v in subwords.items() if v != SUBWORDS.get(k)}
    sentences = {
        f"{split}_sentences": content_sha256(corpus.files(split))
        for split in ("train", "validation")
        if split == "train" or split in corpus.splits
    }
    mixed = {} if corpus.mixture is None else corpus.mixture.to_dict()
    if corpus.tags:
        mixed["source_tag"] = list(corpus.tags)
    if corpus.alignments is not None:
        mixed["alignments"] = content_sha256([corpus.alignments])
    return {"preset": preset.name, **sentences, **mixed, **options}


def content_sha256(files: Iterable[Path]) -> str:
    """Digest of the contents of some files, in their order."""
    digests = hashlib.sha256()
    for path in files:
        digests.update(bytes.fromhex(remembered_entry(path)["sha256"]))
    return digests.hexdigest()


def run_tokenizer(
    run_dir: Path,
    saved: Mapping[str, Any],
    corpus: Corpus,
    vocabulary_size: int,
    subwords: Mapping[str, Any],
) -> Tokenizer:
    """The tokenizer of a run, trained on the training split if the run is new.

    Raises:
        DamagedFolderError: the file is not the one that the run was started with.
        DifferentSettingsError: the run has a vocabulary of another size.
    """
    path = run_dir / TOKENIZER
    if not path.is_file():
        return learn_vocabulary(corpus, vocabulary_size, **subwords)
    written = saved.get("tokenizer")
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if written not in (None, found):
        raise DamagedFolderError(
            f"{path} is not what was written: restore it from a copy, such as the one "
            f"in {run_dir / BEST}. Received: sha256 {found}, not {written}"
        )
    tokenizer = Tokenizer.load(path)
    if tokenizer.vocabulary_size != vocabulary_size:
        old = tokenizer.vocabulary_size
        difference = Difference("vocabulary_size", old, vocabulary_size)
        raise DifferentSettingsError(run_dir, [difference])
    return tokenizer


def run_precision(saved: Mapping[str, Any]) -> str:
    """The precision of a run; of a new one, the faster on this machine."""
    return str(saved["training"]["precision"]) if saved else faster_precision()


def _validation(
    model: keras.Model,
    tokens: Any,
    batch_tokens: int,
    seed: int,
    bleu_sentences: int | None,
) -> dict[str, Any]:
    """The arguments of `train` that are about validation."""
    if "validation" not in tokens.corpus.splits:
        return {}
    options = {"validation_data": tokens.validation_dataset(batch_tokens, seed=seed)}
    if bleu_sentences:
        sources, references = tokens.corpus.read_lines("validation")
        greedy = Translator(model, tokens.tokenizer, beam_size=1, xla=False)
        options["validation_texts"] = (
            sources[:bleu_sentences],
            references[:bleu_sentences],
        )
        options["translate"] = greedy.translate
    return options
