"""Fine-tuning: runs that begin with a trained model and train all or part of it."""

import os
from collections.abc import Collection
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace
from functools import cache
from functools import cached_property
from pathlib import Path
from typing import Any
from typing import NamedTuple

import keras

from keras_attnvariants.backend.private import nested_layers
from keras_attnvariants.data import Tokenizer
from keras_attnvariants.models.transfer import TakenWeights
from keras_attnvariants.models.transfer import by_path
from keras_attnvariants.models.transfer import has_same_architecture
from keras_attnvariants.models.transfer import take_weights
from keras_attnvariants.presets import Preset
from keras_attnvariants.trained import find_model
from keras_attnvariants.trained import load_model
from keras_attnvariants.trained.adapters import Adapter
from keras_attnvariants.trained.adapters import read_adapter
from keras_attnvariants.trained.adapters import save_adapter
from keras_attnvariants.trained.adapters import weights_sha256
from keras_attnvariants.trained.names import ADAPTER
from keras_attnvariants.trained.names import read_card
from keras_attnvariants.training.run_models import LOG
from keras_attnvariants.training.run_models import better_model
from keras_attnvariants.training.run_models import load_run
from keras_attnvariants.training.run_settings import read_settings
from keras_attnvariants.utils.checks import check_optional_integer

# Sizes of a model that are options of its preset.
SIZES = ("num_layers", "hidden_dim", "intermediate_dim")
# Subfolder of a run with the changes that LoRA made to the model.
ADAPTED = "adapter"
# Arguments of a model that are not its architecture; and all those that a run decides
# even if it keeps the architecture.
NOT_ARCHITECTURE = ("name", "dtype", "quantization")
DECIDED_BY_RUN = (*NOT_ARCHITECTURE, "vocabulary_size", "source_vocabulary_size")


class TrainedModel(NamedTuple):
    """A trained model and its tokenizer."""

    model: keras.Model
    tokenizer: Tokenizer


@dataclass(frozen=True, kw_only=True)
class FineTuning:
    """Start of a run with a trained model, and the weights that it trains.

    Attributes:
        model: name or address of a trained model, folder of one, or folder of a run,
            whose better model is taken. The run uses its vocabulary.
        freeze: parts whose weights stay as they are, as paths of layers or their
            beginnings: `"embeddings"`, `"encoder"`, `"decoder_0/cross_attention"`.
        lora_rank: rank of the matrices `A [I, rank]` and `B [rank, O]` whose product is
            added to each kernel `[I, O]`; only these are trained (LoRA, Hu et al. 2021,
            eq. 3). `None` to train all weights. Saved models have the sums. The folder
            `adapter/` of a finished run has the products alone; it loads as the better
            model of the run while the trained model can be found at its old place.
        lora_layers: names of the dense layers that get them, such as `"query"`; all
            dense layers by default.
        keep_architecture: whether the run uses the architecture of the model, and only
            the training settings of a preset.

    Raises:
        ValueError: the rank is out of range, or there are layers for it but no rank.
    """

    model: str | os.PathLike[str]
    freeze: Sequence[str] = ()
    lora_rank: int | None = None
    lora_layers: Sequence[str] = ()
    keep_architecture: bool = False

    def __post_init__(self) -> None:
        check_optional_integer("lora_rank", self.lora_rank)
        if self.lora_layers and self.lora_rank is None:
            raise ValueError(
                "`lora_layers` needs `lora_rank`. Received: "
                f"{', '.join(self.lora_layers)}"
            )

    @cached_property
    def trained(self) -> TrainedModel:
        """The model and its tokenizer.

        Raises:
            FileNotFoundError: there is no such model.
            ValueError: a file of it is damaged, or it has no tokenizer.
        """
        folder = find_model(self.model, "model")
        is_run = (folder / LOG).is_file()
        loaded = load_run(folder) if is_run else load_model(self.model)
        if loaded.tokenizer is None:
            raise ValueError(
                f"`model` must have a tokenizer. Received: {self.model}, without"
            )
        return TrainedModel(loaded.model, loaded.tokenizer)

    def sizes(self, preset: Preset) -> dict[str, Any]:
        """The sizes of the model that differ from a preset's, or all its arguments.

        Raises:
            ValueError: the preset is of another kind of model.
        """
        if not isinstance(self.trained.model, preset.model):
            raise ValueError(
                "The preset must be of the same kind as the trained model, which is a "
                f"{type(self.trained.model).__name__}. Received: {preset.name}, a "
                f"{preset.model.__name__}"
            )
        found = self.trained.model.get_config()
        if self.keep_architecture:
            return {k: v for k, v in found.items() if k not in DECIDED_BY_RUN}
        layers = nested_layers(self.trained.model)
        heads = {layer.num_heads for layer in layers if hasattr(layer, "num_heads")}
        known = {name: found[name] for name in SIZES if name in found}
        if len(heads) == 1 and "num_heads" in preset.options:
            [known["num_heads"]] = heads
        return {k: v for k, v in known.items() if v != preset.options.get(k)}

    def fitted(self, preset: Preset) -> Preset:
        """A preset with the sizes and the vocabulary of the model."""
        size = self.trained.tokenizer.vocabulary_size
        options = {**self.sizes(preset), "vocabulary_size": size}
        return replace(preset, options={**preset.options, **options})

    def describe(self) -> dict[str, Any]:
        """The settings with which a run has to be resumed, as JSON."""
        return {
            "from_model": weights_sha256(self.trained.model),
            "freeze": sorted(self.freeze),
            "lora": self.lora_rank,
            "lora_layers": sorted(self.lora_layers),
            **({"keep_architecture": True} if self.keep_architecture else {}),
        }

    def start(self, model: keras.Model) -> TakenWeights:
        """Gives a new model its weights, and decides which of them are trained.

        Raises:
            ValueError: no weight fits, there is no layer of a name, or nothing is left
                to train.
        """
        taken = take_weights(self.trained.model, model)
        if self.lora_rank is not None:
            add_lora(model, self.lora_rank, self.lora_layers)
        for part in self.freeze:
            freeze(model, part)
        if not model.trainable_variables:
            raise ValueError(
                "`freeze` must leave weights to train. Received: "
                f"{', '.join(self.freeze)}"
            )
        return taken

    def write_adapter(self, run: Path, preset: str) -> None:
        """Writes the changes that LoRA made to the model, if it was used.

        Args:
            run: folder of the run, whose better model is taken.
            preset: name of its preset.

        Raises:
            OSError: it could not be written.
        """
        if self.lora_rank is None:
            return
        place, rank, model = find_model(self.model), self.lora_rank, self.trained.model
        name = os.fspath(self.model)
        if (place / ADAPTER).is_file():
            # The sum of two adapters is an adapter as well.
            first = read_adapter(place)
            name, rank = first.model, rank + first.rank
            place, model = find_model(name), load_model(name).model
        elif (place / LOG).is_file():
            place /= better_model(place / LOG)
        folder = run / ADAPTED
        if os.path.exists(name):
            name = os.path.relpath(place.resolve(), folder.resolve())
        tuned = load_run(run).model
        if not has_same_architecture(model, tuned):
            print(f"No adapter: {self.model} has another architecture than its run.")
            return
        own = "" if self.keep_architecture else preset
        settings = Adapter(name, weights_sha256(model), rank, own)
        save_adapter(folder, model, tuned, settings)
        print(f"LoRA adapter for {self.model}: {folder}")


@cache
def fine_tuning_from(model: str | None) -> FineTuning | None:
    """The `FineTuning` from a model, which all runs of one process load once."""
    return None if model is None else FineTuning(model=model)


def add_lora(model: keras.Model, rank: int, names: Collection[str] = ()) -> None:
    """Adds products of two small matrices to kernels, and trains only these matrices.

    Args:
        model: a built model, not quantized.
        rank: width of the matrices.
        names: names of the dense layers that get them; empty for all.

    Raises:
        ValueError: there is no layer of a name, or the products would not be smaller
            than the matrices.
    """
    dense = [x for x in nested_layers(model) if isinstance(x, keras.layers.Dense)]
    if unknown := sorted(set(names) - {layer.name for layer in dense}):
        known = ", ".join(sorted({layer.name for layer in dense}))
        raise ValueError(
            f"`lora_layers` must be names of dense layers: {known}. "
            f"Received: {', '.join(unknown)}"
        )
    chosen = [layer for layer in dense if not names or layer.name in names]
    largest = max(min(layer.kernel.shape) for layer in chosen)
    if rank >= largest:
        raise ValueError(
            f"The rank of LoRA must be below {largest}, the smaller side of the "
            f"largest matrix. Received: {rank}"
        )
    for weight in model.weights:
        weight.trainable = False
    for layer in chosen:
        layer.enable_lora(rank)


def freeze(model: keras.Model, part: str) -> None:
    """Freezes the weights of a part of a model.

    Raises:
        ValueError: there is no such part.
    """
    paths = by_path(model.weights)
    found = [path for path in paths if path.startswith((f"{part}/", f"{part}_"))]
    if not found:
        known = ", ".join(dict.fromkeys(path.partition("/")[0] for path in paths))
        raise ValueError(
            f"`freeze` must be a part of the model or a layer in one: {known}. "
            f"Received: {part}"
        )
    for path in found:
        paths[path].trainable = False


def preset_of(model: str | os.PathLike[str]) -> str:
    """The name of the preset of a trained model; empty if unknown.

    Args:
        model: as of `FineTuning`.

    Raises:
        FileNotFoundError: there is no such model.
        ValueError: a file of it is damaged.
    """
    folder = find_model(model, "model")
    if (folder / LOG).is_file():
        data = read_settings(folder).get("training", {}).get("data", {})
        name = "" if data.get("keep_architecture") else data.get("preset", "")
    elif (folder / ADAPTER).is_file():
        name = read_adapter(folder).preset
    else:
        name = read_card(folder).get("preset", "")
    return str(name)
