"""Options of `kav train`: its start, subwords, training and devices."""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any
from typing import ClassVar
from typing import Literal

from keras_attnvariants.cli.commands import given
from keras_attnvariants.cli.commands import option
from keras_attnvariants.cli.models import model_folder
from keras_attnvariants.cli.models import model_task
from keras_attnvariants.cli.options import FROM_MODEL
from keras_attnvariants.cli.options import TINY
from keras_attnvariants.cli.options import SizeOptions
from keras_attnvariants.cli.options import UpdateOptions

if TYPE_CHECKING:
    from keras_attnvariants.training import FineTuning

# Models without a preset, such as imported ones, are trained like this one.
WITHOUT_PRESET = "kav/base/bible"


@dataclass(frozen=True, kw_only=True)
class StartOptions:
    """Start of a new run, instead of random weights.

    Raises:
        ValueError: an option lacks another.
    """

    PANEL: ClassVar[str] = "Starting from a trained model or a vocabulary"

    from_model: str | None = FROM_MODEL
    freeze: list[str] | None = option(
        "Part whose weights stay as they are: embeddings, encoder, decoder, "
        "decoder_0/cross_attention, …. May be repeated."
    )
    lora: int | None = option(
        "Train only a product of two matrices of this rank for each matrix of the "
        "model, to which it is added (LoRA). Saved models contain the sums; "
        "RUN/adapter, which can be used as a model, contains only the products.",
        min=1,
    )
    lora_layers: list[str] | None = option(
        "Layer with such a product, such as query; all by default. May be repeated."
    )
    tokenizer: Path | None = option(
        "SentencePiece model to use instead of learning a vocabulary. Padding, unknown "
        "words, beginning and end may have any ids."
    )

    def __post_init__(self) -> None:
        tuned = (self.freeze, self.lora, self.lora_layers)
        if self.from_model is None and any(tuned):
            raise ValueError("--freeze, --lora and --lora-layers need --from.")
        if self.lora_layers and self.lora is None:
            raise ValueError("--lora-layers needs --lora.")
        if self.from_model is not None and self.tokenizer is not None:
            raise ValueError(
                "--tokenizer cannot go with --from: the weights of a model mean the "
                "tokens of its own vocabulary."
            )

    def fine_tuning(self, preset: str | None) -> "FineTuning | None":
        """The start with the weights of a model, if any.

        Args:
            preset: name given by the user.

        Raises:
            FileNotFoundError: there is no such model.
            ValueError: it is damaged, or an option is out of range.
        """
        from keras_attnvariants.training import FineTuning
        from keras_attnvariants.training.fine_tuning import preset_of

        if self.from_model is None:
            return None
        model_folder("--from", self.from_model)
        return FineTuning(
            model=self.from_model,
            freeze=self.freeze or (),
            lora_rank=self.lora,
            lora_layers=self.lora_layers or (),
            keep_architecture=preset is None and not preset_of(self.from_model),
        )

    def preset(self, task: str | None) -> str:
        """The default preset: that of the model, or a small one for a task."""
        from keras_attnvariants.data import tasks
        from keras_attnvariants.training.fine_tuning import preset_of

        if self.from_model is None:
            return tasks.get(task or tasks.DEFAULT).preset
        return preset_of(self.from_model) or WITHOUT_PRESET

    def task(self) -> str | None:
        """The task of the model that training continues from, if any."""
        if self.from_model is None:
            return None
        return model_task(model_folder("--from", self.from_model))


@dataclass(frozen=True, kw_only=True)
class SubwordOptions:
    """Options for learning subwords."""

    PANEL: ClassVar[str] = SizeOptions.PANEL

    model_type: Literal["unigram", "bpe"] | None = option(
        "How subwords are learned (unigram).", None, "--subwords"
    )
    character_coverage: float | None = option(
        "Share of characters that get a subword (1.0).", min=0.9, max=1.0
    )


@dataclass(frozen=True, kw_only=True)
class TrainingOptions(UpdateOptions):
    """Training settings that replace the preset's."""

    steps: int | None = option("Number of updates.", min=1)
    minutes: float | None = option(
        "Limit on the time of training, over all resumes.", min=0.01
    )
    accumulate: int | None = option(
        "Batches whose gradients make an update together (1).", min=1
    )
    dropout: float | None = option(
        "Dropout of embeddings and sub-layers.", min=0, max=1
    )
    label_smoothing: float | None = option(
        "Probability taken from the label.", min=0, max=1
    )
    clipnorm: float | None = option(
        "Longest gradient; none by default.", None, "--clip-norm", min=TINY
    )
    ema: float | None = option(
        "Momentum of a moving average of the weights, say 0.999, that validations and "
        "the best model have; none by default.",
        min=0,
        max=1,
    )
    alignment_weight: float | None = option(
        "Factor of the loss of --alignments.", min=TINY
    )
    ctc_weight: float | None = option(
        "Factor of a CTC loss of the encoder's outputs, say 0.3, for speech; none by "
        "default.",
        min=TINY,
    )
    average_last: int | None = option(
        "Number of validated weights to keep and to average.", min=1
    )
    save_every: int | None = option("Updates between two saved states (500).", min=1)

    def settings(self, alignments: list[str] | None) -> dict[str, Any]:
        """The given options, by the names of the fields of `TrainingConfig`.

        Raises:
            ValueError: one needs alignments.
        """
        from keras_attnvariants.training.training_config import with_schedule

        found = given(self, "batch_tokens", "minutes", "dropout", "precision")
        if "alignment_weight" in found and not any(alignments or ()):
            raise ValueError(
                "--alignment-weight needs --alignments. "
                f"Received: {self.alignment_weight} without"
            )
        return with_schedule(found)


@dataclass(frozen=True, kw_only=True)
class DeviceOptions:
    """Devices and processes that train a model.

    Raises:
        ValueError: an option lacks another.
    """

    PANEL: ClassVar[str] = "Devices and processes (KERAS_BACKEND=jax)"

    devices: int | None = option(
        "Devices of each process (1; all with --coordinator).", min=1
    )
    model_parallel: int | None = option(
        "Devices of a process among which each copy of the model is divided (1).",
        min=1,
    )
    coordinator: str | None = option(
        "host:port of process 0, where it waits for the others."
    )
    process: int | None = option(
        "Number of this process; number 0 writes the folder of the run.", min=0
    )
    processes: int | None = option(
        "Number of processes, each started with this command.", min=2
    )
    wait: float | None = option("Seconds to wait for all processes (300).", min=0)

    def __post_init__(self) -> None:
        if self.coordinator is None:
            if (self.process, self.processes, self.wait) != (None, None, None):
                raise ValueError(
                    "--process, --processes and --wait need --coordinator."
                )
        elif self.process is None or self.processes is None:
            raise ValueError("--coordinator needs --process and --processes.")
        if self.model_parallel is not None and not self._several:
            raise ValueError(
                "--model-parallel needs --devices of more than 1, or --coordinator."
            )

    @property
    def _several(self) -> bool:
        return self.coordinator is not None or self.devices not in (None, 1)

    @contextlib.contextmanager
    def devices_to_use(self) -> Iterator[None]:
        """Context for training on these devices, in which only process 0 prints."""
        with contextlib.ExitStack() as stack:
            if self._several:
                from keras_attnvariants.training import several_devices

                stack.enter_context(several_devices(**given(self)))
            if self.process:
                nowhere = stack.enter_context(open(os.devnull, "w"))
                stack.enter_context(contextlib.redirect_stdout(nowhere))
            yield
