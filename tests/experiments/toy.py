"""A comparison small enough to be run in a test, and a job for its processes."""

import errno
import os
import time

SYSTEMS = """
[systems.base]
preset = "kav/base/bible"

[systems.hc]
preset = "kav/hc-sa/bible"
"""

SIZES = """
[vocabulary]
size = 50

[options]
num_layers = 1
hidden_dim = 8
intermediate_dim = 8
num_heads = 2
"""


def toy_file(folder, corpus, systems=SYSTEMS, top="", **changes):
    """Writes a comparison of two systems and two seeds, of four updates each.

    Args:
        folder: folder to write it to.
        corpus: folder with the corpus.
        systems: the tables of the systems.
        top: further keys at the top.
        changes: replacements of parts of the text, by the text that they replace.
    """
    text = f"""
title = "Toys"
baseline = "base"
seeds = [1, 2]
{top}
[corpus]
data = "{corpus}"
source = "xx"
target = "yy"

[test_sets]
test = "test"

[budget]
updates = 4
validations = 2
{SIZES}
[training]
batch_tokens = 512
save_every = 1
learning_rate = 1e-2
warmup_steps = 2

[decoding]
beam_size = 2

[scores]
samples = 20
examples = 2

[speed]
sentences = 4
runs = 1

[run]
at_once = 2
precision = "float32"

[analyses]
names = ["locality", "activation-shares", "bleu-by-length"]
sentences = 10
attention_sentences = 1
{systems}"""
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    path = folder / "comparison.toml"
    path.write_text(text, "utf-8")
    return path


def work(kind, report):
    """A job that ends in the way that its kind names."""
    report(0.5, kind)
    if kind == "fails":
        raise ValueError("two\nlines")
    if kind == "dies":
        os._exit(7)
    if kind == "full":
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    if kind == "sleeps":
        time.sleep(60)
