"""Train the models that the package contains, one after the other, and pack them.

    python recipes/train_models.py --data tatoeba-de-en

Seven variants are trained from English to German; the one with the highest BLEU on its
card is also trained from German to English. One of the seven is exported for servers.
Models already trained, packed or exported are left as they are; an interrupted training
continues.
"""

import argparse
import subprocess
import sys
from pathlib import Path

from model_cards import card_of

import keras_attnvariants
from keras_attnvariants.cli.models import load
from keras_attnvariants.presets.kav import BY_CORPUS
from keras_attnvariants.trained.names import MODELS

KAV, PACK = ("-m", "keras_attnvariants"), Path(__file__).with_name("pack_model.py")
ABOUT = Path(__file__).with_name("tatoeba-de-en.toml")
EXPORTED = "hc-sa"
SERVED = Path(__file__).parents[1] / "saved_models" / "en-de"


def run(*arguments: object) -> None:
    """Runs Python with arguments, and exits if it fails."""
    command = [sys.executable, *map(str, arguments)]
    if status := subprocess.run(command).returncode:  # noqa: S603
        raise SystemExit(status)


def train_and_pack(
    variant: str, source: str, target: str, data: Path, runs: Path, models: Path
) -> Path:
    """The folder of a packed model, which is trained if the folder does not exist."""
    name = f"kav/{variant}/tatoeba-{source}-{target}"
    folder, place = models / name, runs / f"{variant}-{source}-{target}"
    corpus = ("--data", data, "--source", source, "--target", target)
    if not folder.is_dir():
        run(*KAV, "train", *corpus, "--preset", name, "--run", place)
        run(PACK, place, name, *corpus, "--about", ABOUT, "--output", folder)
    return folder


def export(model: Path, served: Path) -> None:
    """Exports a model in the smallest form that is fast on every processor."""
    if (served / "1").is_dir():
        return
    # The integers are stored; the searches compute in float32.
    loaded, tokenizer = load(model, "int8")
    version = keras_attnvariants.serving.export(loaded, tokenizer, served, version=1)
    keras_attnvariants.serving.write_deployment(version, served / "deploy")


def main() -> None:
    """Trains, packs and exports the models."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of the corpus")
    parser.add_argument("--runs", type=Path, default=Path("runs/models"))
    parser.add_argument("--models", type=Path, default=MODELS)
    parser.add_argument("--served", type=Path, default=SERVED)
    places = vars(parser.parse_args())
    served = places.pop("served")
    folders = {
        variant: train_and_pack(variant, "en", "de", **places)
        for variant in BY_CORPUS["tatoeba-en-de"]
    }
    export(folders[EXPORTED], served)
    best = max(folders, key=lambda variant: card_of(folders[variant]).bleu)
    train_and_pack(best, "de", "en", **places)


if __name__ == "__main__":
    main()
