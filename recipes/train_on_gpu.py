"""Trains the systems of a comparison on one GPU with JAX, all seeds side by side.

A small model leaves most of a GPU idle. Here, one program (`jax.vmap`) updates the
models of all seeds, each with its own weights, dropout and batches. Training does not
need TensorFlow.

    python recipes/train_on_gpu.py prepare COMPARISON.toml --folder FOLDER --jobs JOBS
    KERAS_BACKEND=jax python recipes/train_on_gpu.py train SYSTEM... --jobs JOBS
    python recipes/train_on_gpu.py keep COMPARISON.toml --folder FOLDER --jobs JOBS

The first command writes the arrays that the second needs; the third turns the results
of the second into runs, which `kav compare` then scores. Batches are those of
`kav compare`, padded to a few shapes, with the same order of shapes for all seeds.
`train --search` first tries the learning rates of `RATES` with the first seed, and
trains with the one of the lowest validation loss; set this rate in the comparison.
Systems with `continue_from` begin with their models, which `prepare` copies.
"""

import argparse
import importlib
import json
import math
import resource
import time
from collections import defaultdict
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

# Padded source and target positions of batches; one program is compiled for each.
SHAPES = ((16, 18), (26, 30), (58, 72))
RATES = (4e-3, 8e-3, 16e-3)
SEARCH_UPDATES = 1500
# The dtype of saved weights, with which finished models translate.
KEPT = "float16"
# Values recorded for every period, `[periods, seeds]`.
PERIODS = ("loss", "tokens", "val_loss", "seconds")


def prepare(args: argparse.Namespace) -> None:
    """Writes the settings of all systems, and token ids."""
    from keras_attnvariants.experiments import comparison
    from keras_attnvariants.models import SearchSettings

    folder = comparison_folder(args)
    comparison.check(folder)
    folder.path.mkdir(parents=True, exist_ok=True)
    comparison.open_folder(folder)
    settings, jobs = folder.settings, Path(args.jobs)
    jobs.mkdir(parents=True, exist_ok=True)
    systems = {}
    for system in settings.systems:
        model, tokens, config, sizes = built_run(folder.first_run(system))
        search = SearchSettings.of(model, **vars(settings.decoding))
        systems[system.name] = {
            "preset": system.preset,
            "sizes": sizes,
            "config": config.to_dict(),
            "beam_size": search.beam_size,
            "length_penalty": search.length_penalty,
            "starts": [keep_start(run, jobs) for run in folder.runs([system])],
        }
    tests = [test for test in settings.translated if test.share is None]
    sets = {test.name: folder.pairs(test) for test in tests}
    sets |= {name: folder.corpus.read_lines(name) for name in ("train", "validation")}
    arrays = {}
    for name, (sources, targets) in sets.items():
        ids, labels = map(tokens.tokenizer.encode, (sources, targets))
        labels = [[*row, tokens.tokenizer.eos_id] for row in labels]
        lengths = SHAPES[-1]
        arrays[f"{name}/source"] = padded(ids, lengths[0])
        arrays[f"{name}/target"] = padded(labels, lengths[1])
    np.savez_compressed(jobs / "arrays.npz", **arrays)
    common = {
        "seeds": settings.seeds,
        "points": settings.scores.points,
        "tests": [test.name for test in tests],
        "vocabulary_size": folder.vocabulary_size(),
        "imports": settings.imports,
        "systems": systems,
    }
    (jobs / "jobs.json").write_text(json.dumps(common, indent=1))


def keep_start(run: Any, jobs: Path) -> str | None:
    """Copies the model that a run begins with, if any; returns its folder in `jobs`."""
    from keras_attnvariants.data import save_model
    from keras_attnvariants.experiments.checked_tables import path_name

    if run.start is None:
        return None
    name = path_name(run.start.model)
    if not (jobs / name).exists():
        save_model(run.start.trained.model, jobs / name, run.start.trained.tokenizer)
    return name


def plans_of(
    arrays: dict[str, np.ndarray], batch_tokens: int, seeds: list[int]
) -> list[Any]:
    """The batch plan of each seed, as `TokenizedCorpus.plan` makes it."""
    from keras_attnvariants.data import BatchPlan

    lengths = [(arrays[f"train/{s}"][:-1] > 0).sum(1) for s in ("source", "target")]
    return [BatchPlan(*lengths, batch_tokens, seed) for seed in seeds]


def aligned(plans: list[Any], steps: int) -> tuple[np.ndarray, np.ndarray]:
    """The batches of all seeds, epoch by epoch, in the order of shapes of the first.

    Returns:
        Index into `SHAPES` of every update, `[steps]`, and the pairs of its batches,
        int32 `[steps, seeds, rows]`, -1 where there are fewer.
    """
    kinds = {shape: kind_of(shape) for shape in plans[0].shapes}
    count = plans[0].num_batches
    order, batches = [], []
    for epoch in range(-(-steps // count)):
        queues = []
        for plan in plans:
            queue = defaultdict(deque)
            for number in range(epoch * count, (epoch + 1) * count):
                shape, found = plan.batch(number)
                queue[kinds[shape]].append(found)
            queues.append(queue)
        for number in range(epoch * count, (epoch + 1) * count):
            kind = kinds[plans[0].batch(number)[0]]
            order.append(kind)
            batches.append([queue[kind].popleft() for queue in queues])
    rows = max(shape.rows for shape in kinds)
    pairs = np.full((steps, len(plans), rows), -1, np.int32)
    for step, of_seeds in enumerate(batches[:steps]):
        for place, found in enumerate(of_seeds):
            pairs[step, place, : len(found)] = found
    return np.array(order[:steps]), pairs


def kind_of(shape: Any) -> int:
    """Index of the first of `SHAPES` that holds the pairs of a batch."""
    for kind, (source_length, target_length) in enumerate(SHAPES):
        if (
            shape.source_length <= source_length
            and shape.target_length <= target_length
        ):
            return kind
    raise ValueError(f"Batches must fit into {SHAPES[-1]}. Received: {shape}")


def padded(rows: list[list[int]], length: int) -> np.ndarray:
    """Rows of ids and an empty row, padded with 0: int32 `[N + 1, length]`."""
    ids = np.zeros((len(rows) + 1, length), np.int32)
    for row, values in enumerate(rows):
        ids[row, : len(values)] = values
    return ids


def train(args: argparse.Namespace) -> None:
    """Trains systems; writes what they translate, their losses and their weights."""
    jobs = Path(args.jobs)
    common = json.loads((jobs / "jobs.json").read_text())
    with np.load(jobs / "arrays.npz") as file:
        arrays = dict(file)
    for module in common["imports"]:
        importlib.import_module(module)
    for name in args.systems:
        system = common["systems"][name]
        starts = [start and jobs / start for start in system["starts"]]
        runs = SideBySide(system, common, arrays, starts[: args.seeds])
        found = runs.train(args.search)
        np.save(jobs / f"{name}.weights.npy", found.pop("weights"))
        np.savez_compressed(jobs / f"{name}.npz", **found)


class SideBySide:
    """The runs of a system with several seeds, side by side.

    Their weights are one array, `[seeds, number of weights]`, so that an optimizer's
    update is one operation.

    Args:
        system: settings of the system, as `prepare` wrote them.
        common: settings of all systems.
        arrays: arrays that `prepare` wrote.
        starts: folders of the models that the runs of the first seeds begin with; for
            each, `None` to begin with random weights.
    """

    def __init__(
        self,
        system: dict[str, Any],
        common: dict[str, Any],
        arrays: dict[str, np.ndarray],
        starts: list[Path | None],
    ) -> None:
        import jax
        import keras

        from keras_attnvariants import presets
        from keras_attnvariants.training import TrainingConfig
        from keras_attnvariants.training.fine_tuning import FineTuning
        from keras_attnvariants.training.losses import LabelSmoothedCrossEntropy

        keras.config.disable_flash_attention()
        self.began = time.perf_counter()
        self.system, self.common = system, common
        self.seeds = common["seeds"][: len(starts)]
        values = dict(system["config"])
        self.schedule = keras.saving.deserialize_keras_object(
            values.pop("learning_rate")
        )
        self.peak = self.schedule.peak
        self.config = TrainingConfig(learning_rate=self.schedule, **values)
        self.loss = LabelSmoothedCrossEntropy(self.config.label_smoothing)
        states = []
        # Many small operations are faster on the CPU.
        with jax.default_device(jax.devices("cpu")[0]):
            for seed, start in zip(self.seeds, starts, strict=True):
                keras.utils.set_random_seed(seed)
                self.model = presets.get(system["preset"]).build(
                    common["vocabulary_size"],
                    dtype=self.config.precision,
                    **system["sizes"],
                )
                if start is not None:
                    FineTuning(model=start).start(self.model)
                weights = flat(self.model.trainable_variables)
                self.optimizer = self.config.optimizer()
                self.optimizer.build([keras.Variable(weights)])
                groups = self.model.non_trainable_variables, self.optimizer.variables
                values = [[np.array(v.value) for v in group] for group in groups]
                states.append((np.array(weights), *values))
        # Weights, other variables of the model, and variables of the optimizer.
        self.start = jax.tree.map(lambda *parts: np.stack(parts), *states)
        plans = plans_of(arrays, self.config.data["batch_tokens"], self.seeds)
        self.order, pairs = aligned(plans, self.config.steps)
        self.sets = {name: jax.device_put(ids) for name, ids in arrays.items()}
        self.pairs = jax.device_put(pairs)
        self.programs = self.compiled()

    def compiled(self) -> dict[Any, Any]:
        """The programs: an update with each of `SHAPES`, validation and translation."""
        import jax

        state = jax.device_put(self.start)
        some = state[0][0], [array[0] for array in state[1]]
        peaks = np.full(len(self.seeds), RATES[0], np.float32)
        counts = np.array((self.pairs >= 0).sum(-1).max(-1))
        lowered = {
            "validate": jax.jit(jax.vmap(self.validate_one)).lower(*state[:2]),
            "translate": jax.jit(self.translate_one).lower(
                *some, self.sources("validation")
            ),
        }
        for kind, lengths in enumerate(SHAPES):
            rows = int(counts[self.order == kind].max(initial=1))

            def update(state, step, peaks, pairs, tables, rows=rows, lengths=lengths):
                cut = [table[:, :n] for table, n in zip(tables, lengths, strict=True)]
                return jax.vmap(self.update_one, in_axes=(0, 0, 0, None))(
                    state, pairs[step, :, :rows], peaks, cut
                )

            arguments = state, np.int32(0), peaks, self.pairs, self.tables("train")
            lowered[kind] = jax.jit(update, donate_argnums=0).lower(*arguments)
        with ThreadPoolExecutor(len(lowered)) as pool:
            found = pool.map(lambda program: program.compile(), lowered.values())
            return dict(zip(lowered, found, strict=True))

    def tables(self, name: str) -> tuple[Any, Any]:
        """Source and target ids of a set."""
        return self.sets[f"{name}/source"], self.sets[f"{name}/target"]

    def sources(self, name: str) -> np.ndarray:
        """Source ids of a set, padded to the number of rows of the largest set."""
        tests = ("validation", *self.common["tests"])
        ids = np.array(self.sets[f"{name}/source"])
        rows = max(len(self.sets[f"{test}/source"]) for test in tests)
        return np.pad(ids, ((0, rows - len(ids)), (0, 0)))

    def unflat(self, weights: Any) -> list[Any]:
        """The trainable weights of one run, from a flat array of them."""
        import jax

        shapes = [variable.shape for variable in self.model.trainable_variables]
        parts = jax.lax.split(weights, [math.prod(shape) for shape in shapes])
        return [x.reshape(shape) for x, shape in zip(parts, shapes, strict=True)]

    def update_one(
        self, state: Any, pairs: Any, peak: Any, tables: Any
    ) -> tuple[Any, tuple[Any, Any]]:
        """An update of one run: its new state, its summed loss and its tokens."""
        import jax

        weights, frozen, optimizer = state
        source, labels = (table[pairs] for table in tables)

        def loss_of(trainable: Any) -> tuple[Any, Any]:
            logits, after = self.model.stateless_call(
                trainable, frozen, inputs_of(source, labels), training=True
            )
            return self.loss(labels, logits), after

        slopes = jax.value_and_grad(loss_of, has_aux=True)
        (loss, frozen), gradients = slopes(self.unflat(weights))
        self.schedule.scale = peak * self.schedule.warmup_steps**0.5
        [weights], optimizer = self.optimizer.stateless_apply(
            optimizer, [flat(gradients)], [weights]
        )
        tokens = (labels > 0).sum()
        return (weights, frozen, optimizer), (loss * tokens, tokens)

    def validate_one(self, weights: Any, frozen: Any) -> Any:
        """The loss of one run on the validation set."""
        source, labels = self.tables("validation")
        logits, _ = self.model.stateless_call(
            self.unflat(weights), frozen, inputs_of(source, labels), training=False
        )
        return self.loss(labels, logits)

    def translate_one(self, weights: Any, frozen: Any, source: Any) -> Any:
        """The best translations of sources with the weights of one run, `[N, T]`."""
        import keras

        from keras_attnvariants import beam_search

        values = [*self.unflat(weights), *frozen]
        model = self.model
        variables = [*model.trainable_variables, *model.non_trainable_variables]
        with keras.StatelessScope(zip(variables, values, strict=True)):
            found = beam_search(
                model,
                source,
                beam_size=self.system["beam_size"],
                length_penalty=self.system["length_penalty"],
            )
        return found.ids[:, 0].astype("uint16")

    def updates(
        self, first: int, last: int, state: Any, rates: Any, pairs: Any
    ) -> tuple[Any, np.ndarray, np.ndarray]:
        """Some updates of all runs: the state after them, mean losses, and tokens.

        Args:
            first, last: the first update, and the one after the last.
            state: the state of all runs before them; its buffers are donated.
            rates: peaks of the learning rates, `[seeds]`.
            pairs: the pairs of all batches, see `aligned`.
        """
        data = np.asarray(rates, np.float32), pairs, self.tables("train")
        logs = []
        for step in range(first, last):
            update = self.programs[self.order[step]]
            state, log = update(state, np.int32(step), *data)
            logs.append(log)
        losses, tokens = np.array(logs).transpose(1, 2, 0).sum(-1)
        return state, losses / tokens, tokens

    def validation(self, weights: Any, frozen: Any) -> np.ndarray:
        """The loss of each run on the validation set."""
        return np.array(self.programs["validate"](weights, frozen))

    def translations(self, weights: Any, frozen: Any, name: str) -> np.ndarray:
        """Ids of translations of a set by each run, uint16 `[seeds, N, T]`."""
        source, count = self.sources(name), len(self.sets[f"{name}/source"]) - 1
        runs = range(len(self.seeds))
        found = [
            self.programs["translate"](
                weights[i], [array[i] for array in frozen], source
            )
            for i in runs
        ]
        return np.array([np.array(ids)[:count] for ids in found])

    def train(self, search: bool) -> dict[str, Any]:
        """Trains all runs and translates with them.

        Args:
            search: whether to try learning rates first.
        """
        import jax
        import jax.numpy as jnp

        print(f"compiled after {self.elapsed():.0f} s", flush=True)
        count, rate = len(self.seeds), self.search() if search else self.peak
        state, rates = jax.device_put(self.start), np.full(count, rate)
        every, periods = self.config.validate_every, []
        last: deque[Any] = deque(maxlen=self.config.average_last)
        found, best, seconds = {}, None, 0.0
        for first in range(0, self.config.steps, every):
            began = time.perf_counter()
            after = self.updates(first, first + every, state, rates, self.pairs)
            state, loss, tokens = after
            # The next update donates the buffers of the state.
            weights, frozen = jax.tree.map(jnp.copy, state[:2])
            own = self.validation(weights, frozen)
            seconds += time.perf_counter() - began
            periods.append((loss, tokens, own, np.full(count, seconds)))
            last.append(weights)
            best = better(best, (own, weights))
            found |= self.at_point(first + every, weights, frozen)
        values = map(np.array, zip(*periods, strict=True))
        found |= dict(zip(PERIODS, values, strict=True))
        weights = sum(last) / len(last)
        found["averaged_loss"] = self.validation(weights, frozen)
        _, weights = better(best, (found["averaged_loss"], weights))
        found["weights"] = np.array(weights).astype(KEPT)
        weights = jnp.array(found["weights"].astype("float32"))
        for name in self.common["tests"]:
            found[name] = self.translations(weights, frozen, name)
        print(f"{seconds:.1f} s of training, {self.elapsed():.0f} s in all", flush=True)
        return found | {
            "seeds": self.seeds,
            "rate": rate,
            "memory_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            "cpu_seconds": time.process_time(),
            "device": jax.devices()[0].device_kind,
        }

    def search(self) -> float:
        """The learning rate with the lowest loss after some updates of one seed."""
        import jax

        rates = np.resize(RATES, len(self.seeds))
        alike = jax.tree.map(lambda x: np.repeat(x[:1], len(x), axis=0), self.start)
        pairs = np.array(self.pairs)
        pairs = jax.device_put(np.repeat(pairs[:, :1], pairs.shape[1], axis=1))
        last = min(SEARCH_UPDATES, self.config.steps)
        state, *_ = self.updates(0, last, jax.device_put(alike), rates, pairs)
        losses = self.validation(*state[:2])
        for rate, loss in sorted(zip(rates.tolist(), losses.tolist(), strict=True)):
            print(f"learning rate {rate:g}: validation loss {loss:.3f}", flush=True)
        return float(rates[np.nanargmin(losses)])

    def at_point(self, step: int, weights: Any, frozen: Any) -> dict[str, np.ndarray]:
        """Translations by all runs after some updates, at a point of the budget."""
        point, rest = divmod(step * self.common["points"], self.config.steps)
        if rest or not point:
            return {}
        return {
            f"{name} at {point}": self.translations(weights, frozen, name)
            for name in ("validation", self.common["tests"][0])
        }

    def elapsed(self) -> float:
        """Seconds since these runs began, compilation included."""
        return time.perf_counter() - self.began


def inputs_of(source: Any, labels: Any) -> dict[str, Any]:
    """Inputs of a model, from padded ids of sources and labels."""
    import jax.numpy as jnp

    from keras_attnvariants.data.tokenizer import BOS_ID

    begin = jnp.where(labels[:, :1] > 0, BOS_ID, 0)
    shifted = jnp.concatenate([begin, labels[:, :-1]], axis=1)
    return {"source_ids": source, "target_ids": shifted}


def better(first: Any, second: Any) -> Any:
    """The lower of two losses of each run, `[seeds]`, and its weights."""
    import jax.numpy as jnp

    if first is None:
        return second
    is_lower = second[0] < first[0]
    return (
        np.where(is_lower, second[0], first[0]),
        jnp.where(is_lower[:, None], second[1], first[1]),
    )


def flat(arrays: Any) -> Any:
    """Arrays, flattened and concatenated."""
    from keras import ops

    return ops.concatenate([ops.reshape(array, -1) for array in arrays])


def keep(args: argparse.Namespace) -> None:
    """Makes runs of what was found, as `kav compare` trains them."""
    folder = comparison_folder(args)
    for name in json.loads((Path(args.jobs) / "jobs.json").read_text())["systems"]:
        path = Path(args.jobs) / f"{name}.npz"
        if not path.exists():
            continue
        with np.load(path) as file:
            found = dict(file)
        found["weights"] = np.load(path.with_suffix(".weights.npy"))
        for place, seed in enumerate(found["seeds"]):
            keep_run(folder, name, int(seed), place, found)
            print(f"{name} {seed}", flush=True)


def keep_run(
    folder: Any, name: str, seed: int, place: int, found: dict[str, Any]
) -> None:
    """Writes the folder of a run, its record and its translations."""
    from keras_attnvariants.data import save_model
    from keras_attnvariants.experiments.comparison import write_json
    from keras_attnvariants.experiments.comparison_folder import SETTINGS
    from keras_attnvariants.experiments.comparison_folder import Run
    from keras_attnvariants.experiments.comparison_folder import RunRecord
    from keras_attnvariants.experiments.results import RunResult
    from keras_attnvariants.training.run_models import LOG
    from keras_attnvariants.training.run_models import better_model
    from keras_attnvariants.training.run_settings import CONFIG
    from keras_attnvariants.training.run_settings import describe_run
    from keras_attnvariants.utils.records import write_record

    run = Run(folder, folder.settings.system(name), seed)
    model, tokens, config, _ = built_run(run)
    if not np.isclose(config.learning_rate.peak, found["rate"]):
        raise ValueError(
            f"The comparison gives {name!r} another learning rate than it was trained "
            f"with: set its `training.learning_rate` to {found['rate']:g}"
        )
    variables = model.trainable_variables
    ends = np.cumsum([math.prod(variable.shape) for variable in variables])
    weights = np.split(found["weights"][place].astype("float32"), ends[:-1])
    for variable, array in zip(variables, weights, strict=True):
        variable.assign(array.reshape(variable.shape))
    write_json(run.path.parent / SETTINGS, folder.settings_of(run.system))
    device = f"{found['device']}, {len(found['seeds'])} runs side by side"
    settings = describe_run(model, tokens.tokenizer, config)
    settings |= {"backend": "jax", "machine": {"processor": device}}
    write_json(run.path / CONFIG, settings)
    own = {key: found[key][:, place] for key in PERIODS}
    averaged = float(found["averaged_loss"][place])
    log = events_of(config, own, averaged)
    (run.path / LOG).write_text("".join(f"{json.dumps(line)}\n" for line in log))
    save_model(model, run.path / better_model(run.path / LOG), tokens.tokenizer)
    seconds = float(own["seconds"][-1])
    result = RunResult(
        system=name,
        seed=seed,
        updates=config.steps,
        seconds=seconds,
        cpu_seconds=float(found["cpu_seconds"]) / len(found["seeds"]),
        tokens_per_second=float(own["tokens"].sum()) / seconds,
        memory_mib=float(found["memory_mib"]),
        validation_loss=min(averaged, *own["val_loss"].tolist()),
        processor=device,
    )
    digests = {}
    for test in folder.settings.translated:
        ids = found[test.name.split(" of ")[0]][place]
        run.write_translations(test, tokens.tokenizer.decode(ids))
        digests[test.name] = run.digest(test)
    write_record(run.record_path, RunRecord(result, digests))


def events_of(
    config: Any, found: dict[str, np.ndarray], averaged: float
) -> list[dict[str, Any]]:
    """The log of a run, from the values of its periods and the loss of the average."""
    events, before = [], 0.0
    for period, values in enumerate(zip(*map(found.get, PERIODS), strict=True)):
        loss, tokens, val_loss, seconds = map(float, values)
        step = (period + 1) * config.validate_every
        line = {"step": step, "seconds": seconds, "loss": loss, "tokens": tokens}
        rate, speed = float(config.learning_rate(step)), tokens / (seconds - before)
        speeds = {"learning_rate": rate, "tokens_per_second": speed}
        events.append({"event": "updates", **line, **speeds})
        events.append({"event": "period", **line, "val_loss": val_loss})
        before = seconds
    last = {"step": config.steps, "seconds": before, "val_loss": averaged}
    return [*events, {"event": "averaged", **last}]


def comparison_folder(args: argparse.Namespace) -> Any:
    """The folder of the comparison that the arguments name; imports its modules."""
    from keras_attnvariants.experiments import read_settings
    from keras_attnvariants.experiments.comparison_folder import ComparisonFolder

    settings = read_settings(Path(args.comparison))
    folder = ComparisonFolder(settings, Path(args.folder))
    folder.import_modules()
    return folder


def built_run(run: Any) -> tuple[Any, Any, Any, dict[str, Any]]:
    """Model, tokens, settings and sizes of a run, as `kav compare` trains it."""
    from keras_attnvariants import presets
    from keras_attnvariants.experiments.training_runs import training_settings
    from keras_attnvariants.training.model_training import build_run
    from keras_attnvariants.training.model_training import with_length_ratio
    from keras_attnvariants.training.run_settings import copy_vocabulary

    folder, system = run.folder, run.system
    batch_tokens, settings = training_settings(folder, system)
    copy_vocabulary(folder.path, run.path)
    data = {"batch_tokens": batch_tokens, "seed": run.seed}
    given = {"precision": folder.precision, "data": data, **settings}
    preset = presets.get(system.preset)
    model, tokens, config = build_run(
        preset,
        folder.corpus,
        run.path,
        folder.vocabulary_size(),
        folder.settings.vocabulary.subwords,
        folder.options(system),
        given,
        run.start,
    )
    return (
        model,
        tokens,
        config,
        dict(with_length_ratio(folder.options(system), preset, tokens)),
    )


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(required=True)
    for function in (prepare, train, keep):
        command = commands.add_parser(function.__name__, help=function.__doc__)
        command.set_defaults(function=function)
        command.add_argument("--jobs", required=True, help="folder of the arrays")
        if function is not train:
            command.add_argument("comparison", help="settings of the comparison")
            command.add_argument("--folder", required=True, help="its folder")
            continue
        command.add_argument("systems", nargs="+", help="names of systems")
        command.add_argument("--seeds", type=int, help="number of seeds, of the first")
        command.add_argument("--search", action="store_true", help="try learning rates")
    args = parser.parse_args()
    args.function(args)


if __name__ == "__main__":
    main()
