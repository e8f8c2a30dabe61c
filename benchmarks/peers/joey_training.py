"""JoeyNMT, as a program that trains and reports its progress by CPU seconds.

    python joey_training.py TASK.json

It runs in an environment with JoeyNMT and PyTorch, and prints one JSON object per line.
"""

import json
import sys
import time
from pathlib import Path

import torch
from joeynmt import training
from joeynmt.config import parse_global_args
from joeynmt.config import set_validation_args
from joeynmt.loss import XentLoss
from joeynmt.prediction import prepare


def configuration(task) -> dict:
    """JoeyNMT's configuration for the task."""
    sizes, data = task["sizes"], Path(task["data"])

    def side(language: str) -> dict:
        return {
            "lang": language,
            "max_length": 256,
            "level": "bpe",
            "tokenizer_type": "sentencepiece",
            "tokenizer_cfg": {"model_file": task["tokenizer"]},
            "voc_file": task["pieces"],
        }

    def half() -> dict:
        return {
            "type": "transformer",
            "num_layers": sizes["num_layers"],
            "num_heads": sizes["num_heads"],
            "embeddings": {
                "embedding_dim": sizes["hidden_dim"],
                "scale": True,
                "dropout": task["dropout"],
            },
            "hidden_size": sizes["hidden_dim"],
            "ff_size": sizes["intermediate_dim"],
            "dropout": task["dropout"],
            "layer_norm": "pre",
        }

    return {
        "name": "comparison",
        "model_dir": task["folder"],
        "use_cuda": False,
        "random_seed": task["seed"],
        "data": {
            "train": str(data / "train"),
            "dev": str(data / "validation"),
            "dataset_type": "plain",
            "src": side(task["source"]),
            "trg": side(task["target"]),
        },
        "training": {
            "optimizer": "adam",
            "adam_betas": [0.9, 0.98],
            "learning_rate": task["learning_rate"],
            "learning_rate_min": 1e-9,
            "learning_rate_warmup": task["warmup_steps"],
            "scheduling": "warmupinversesquareroot",
            "label_smoothing": task["label_smoothing"],
            "normalization": "tokens",
            "batch_type": "token",
            # It counts the longer side of a pair; we count both.
            "batch_size": task["batch_tokens"] // 2,
            "epochs": 10**6,
            "logging_freq": 10**6,
            "validation_freq": 10**9,
        },
        "testing": {"batch_size": 64, "batch_type": "sentence"},
        "model": {
            "initializer": "xavier_uniform",
            "embed_initializer": "xavier_uniform",
            "tied_embeddings": True,
            "tied_softmax": True,
            "encoder": half(),
            "decoder": half(),
        },
    }


class Trainee(training.TrainManager):
    """Trains until all points are reported.

    Args:
        points: CPU seconds of this process after which to report.
        validation: the validation set.
        **options: as for `TrainManager`.
    """

    def __init__(self, points, validation, **options):
        super().__init__(**options)
        self.points = list(points)
        self.validation = validation
        self.tokens = self.updates = 0
        self.not_counted = 0.0  # seconds of scoring

    def _train_step(self, batch):
        used = time.process_time() - self.not_counted
        while self.points and used >= self.points[0]:
            self.points.pop(0)
            self.report(used)
        if not self.points:
            raise KeyboardInterrupt  # JoeyNMT treats it as the end
        self.tokens += batch.ntokens
        self.updates += 1
        return super()._train_step(batch)

    def report(self, used: float) -> None:
        """Prints the progress of the training."""
        start = time.process_time()
        loss, tokens = self.score()
        self.not_counted += time.process_time() - start
        found = {"seconds": used, "tokens": self.tokens, "updates": self.updates}
        print(json.dumps({**found, "loss": loss, "scored": tokens}), flush=True)

    def score(self) -> tuple[float, int]:
        """Mean of `-log p` over the real target tokens, and their number."""
        model, loss, tokens = self.model, 0.0, 0
        smoothed = model._loss_function
        model._loss_function = XentLoss(pad_index=model.pad_index, smoothing=0.0)
        model.eval()
        batches = self.validation.make_iter(
            batch_size=64, pad_index=model.pad_index, eos_index=model.eos_index
        )
        with torch.no_grad():
            for batch in batches:
                batch.sort_by_src_length()
                total, *_ = model(return_type="loss", **vars(batch))
                loss += float(total)
                tokens += batch.ntokens
        model.train()
        model._loss_function = smoothed
        return loss / tokens, tokens


def main(task) -> None:
    """Trains and reports."""
    torch.set_num_threads(task["threads"])
    torch.manual_seed(task["seed"])
    args = parse_global_args(configuration(task), rank=0, mode="train")
    args.model_dir.mkdir(parents=True, exist_ok=True)
    model, train_data, dev_data, _ = prepare(args, rank=0, mode="train")
    parameters = sum(p.numel() for p in model.parameters())
    used = time.process_time()
    print(json.dumps({"parameters": parameters, "start": used}), flush=True)
    trainee = Trainee(
        task["points"],
        dev_data,
        model=model,
        model_dir=args.model_dir,
        device=args.device,
        n_gpu=0,
        rank=0,
        num_workers=0,
        autocast=args.autocast,
        seed=args.seed,
        train_args=args.train,
        dev_args=set_validation_args(args.test),
    )
    trainee.train_and_validate(train_data=train_data, valid_data=dev_data)


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text()))
