"""A Transformer in PyTorch that trains on requests from standard input.

It runs in a separate environment with PyTorch and NumPy, but without this package. It
answers every JSON object on a line of standard input with another one:

    {"task": {…}}    what to train; returns {"parameters": …, "version": …}
    {"updates": N}   trains; returns {"losses": [N numbers], "seconds": …}
"""

import dataclasses
import json
import sys
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional


@dataclasses.dataclass
class Task:
    """A training task: model, data and settings.

    Attributes:
        data: an `.npz` with the initial weights under the names of the modules here,
            and `source`, `target` and `labels` `[batches, B, T]`.
        sizes: sizes of the model.
        dropout: rate on embeddings and on the output of every sub-layer.
        smoothing: label smoothing.
        learning_rate: learning rate of Adam.
        bfloat16: whether products are computed in bfloat16, by autocast.
        compile: whether `torch.compile` compiles the model and its loss.
        threads: number of threads.
        device: `"cpu"` or `"cuda"`.
    """

    data: str
    sizes: dict[str, int]
    dropout: float
    smoothing: float
    learning_rate: float
    bfloat16: bool
    compile: bool
    threads: int
    device: str = "cpu"


class Attention(nn.Module):
    """Scaled dot-product attention; projections of the same input are merged."""

    def __init__(self, width: int, heads: int, is_self: bool):
        super().__init__()
        self.heads = heads
        self.is_self = is_self
        if is_self:
            self.qkv = nn.Linear(width, 3 * width, bias=False)
        else:
            self.q = nn.Linear(width, width, bias=False)
            self.kv = nn.Linear(width, 2 * width, bias=False)
        self.output = nn.Linear(width, width, bias=False)

    def forward(self, x, value=None, mask=None, causal=False):
        if self.is_self:
            q, k, v = self.qkv(x).chunk(3, -1)
        else:
            q, (k, v) = self.q(x), self.kv(value).chunk(2, -1)
        q, k, v = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in (q, k, v)
        )
        x = functional.scaled_dot_product_attention(
            q, k, v, attn_mask=mask, is_causal=causal
        )
        return self.output(x.transpose(1, 2).flatten(2))


class Block(nn.Module):
    """An encoder block, or a decoder block; normalisation comes first."""

    def __init__(self, sizes: dict[str, int], dropout: float, is_decoder: bool):
        super().__init__()
        width, heads = sizes["hidden_dim"], sizes["num_heads"]
        self.is_decoder = is_decoder
        self.self_norm = nn.LayerNorm(width)
        self.self_attention = Attention(width, heads, is_self=True)
        if is_decoder:
            self.cross_norm = nn.LayerNorm(width)
            self.cross_attention = Attention(width, heads, is_self=False)
        self.feed_norm = nn.LayerNorm(width)
        self.inner = nn.Linear(width, sizes["intermediate_dim"])
        self.outer = nn.Linear(sizes["intermediate_dim"], width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, mask, encoded=None):
        own = None if self.is_decoder else mask
        y = self.self_attention(self.self_norm(x), mask=own, causal=self.is_decoder)
        x = x + self.dropout(y)
        if self.is_decoder:
            y = self.cross_attention(self.cross_norm(x), encoded, mask)
            x = x + self.dropout(y)
        y = self.outer(functional.relu(self.inner(self.feed_norm(x))))
        return x + self.dropout(y)


class Transformer(nn.Module):
    """Encoder and decoder; source, target and output share one embedding."""

    def __init__(self, sizes: dict[str, int], dropout: float, max_length: int):
        super().__init__()
        width, layers = sizes["hidden_dim"], range(sizes["num_layers"])
        self.embedding = nn.Embedding(sizes["vocabulary_size"], width)
        self.encoder = nn.ModuleList(Block(sizes, dropout, False) for _ in layers)
        self.decoder = nn.ModuleList(Block(sizes, dropout, True) for _ in layers)
        self.encoder_norm = nn.LayerNorm(width)
        self.decoder_norm = nn.LayerNorm(width)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("positions", sinusoids(max_length, width))

    def embed(self, ids):
        x = self.embedding(ids) * self.embedding.embedding_dim**0.5
        return self.dropout(x + self.positions[: ids.shape[1]])

    def forward(self, source, target):
        mask = (source != 0)[:, None, None]
        x = self.embed(source)
        for block in self.encoder:
            x = block(x, mask)
        encoded, x = self.encoder_norm(x), self.embed(target)
        for block in self.decoder:
            x = block(x, mask, encoded)
        return functional.linear(self.decoder_norm(x), self.embedding.weight)


def sinusoids(length: int, width: int) -> torch.Tensor:
    """Positions `[length, width]`: all sines, then all cosines."""
    angle = torch.arange(length)[:, None] / 10000 ** (
        2 * torch.arange(width // 2) / (width - 2)
    )
    return torch.cat([angle.sin(), angle.cos()], 1)


class Training:
    """A model, its optimizer and its batches."""

    def __init__(self, task: Task):
        torch.set_num_threads(task.threads)
        arrays = dict(np.load(task.data))
        sides = (torch.from_numpy(arrays.pop(name)) for name in BATCH)
        self.batches = list(zip(*(side.to(task.device) for side in sides), strict=True))
        length = max(side.shape[1] for side in self.batches[0])
        self.model = Transformer(task.sizes, task.dropout, length)
        weights = {name: torch.from_numpy(array) for name, array in arrays.items()}
        weights["positions"] = self.model.positions
        self.model.load_state_dict(weights)
        self.model.to(task.device)
        self.task = task
        self.optimizer = torch.optim.Adam(
            self.model.parameters(), task.learning_rate, betas=(0.9, 0.98), fused=True
        )
        self.loss_of = torch.compile(self.loss) if task.compile else self.loss
        self.updates = 0

    def loss(self, source, target, labels):
        """Label-smoothed cross-entropy in float32, the mean over real labels."""
        task = self.task
        with torch.autocast(task.device, torch.bfloat16, enabled=task.bfloat16):
            logits = self.model(source, target)
        return functional.cross_entropy(
            logits.float().flatten(0, 1),
            labels.flatten(),
            ignore_index=0,
            label_smoothing=self.task.smoothing,
        )

    def update(self) -> torch.Tensor:
        """Makes one update on the next batch; returns the loss before it."""
        loss = self.loss_of(*self.batches[self.updates % len(self.batches)])
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.updates += 1
        return loss


BATCH = ("source", "target", "labels")


def main() -> None:
    """Answers until standard input ends."""
    training = None
    for line in sys.stdin:
        request = json.loads(line)
        if "task" in request:
            training = Training(Task(**request["task"]))
            count = sum(weight.numel() for weight in training.model.parameters())
            answer = {"parameters": count, "version": torch.__version__}
        else:
            start = time.perf_counter()
            # Read at the end: a device need not wait for this process in between.
            losses = [training.update() for _ in range(request["updates"])]
            answer = {"losses": [loss.item() for loss in losses]}
            answer["seconds"] = time.perf_counter() - start
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
