"""How TensorFlow Serving merges requests to an exported version."""

from pathlib import Path
from typing import Any

# `--enable_per_model_batching_parameters` makes the server read it, version by version.
BATCHING = "batching_params.pbtxt"

_BATCHING = """\
# Requests of several clients are translated together, but never more sentences than
# the graph accepts. Read with --enable_batching --enable_per_model_batching_parameters.
max_batch_size {{ value: {max_batch} }}
# Microseconds that a request waits for others.
batch_timeout_micros {{ value: 2000 }}
# More are refused as unavailable, so that clients come back later.
max_enqueued_batches {{ value: 16 }}
# Ids are padded; the signatures ignore what is beyond their lengths. Texts need none.
pad_variable_length_inputs: {pads}
{sizes}"""


def write_batching(folder: Path, max_batch: int, signatures: dict[str, Any]) -> None:
    """Writes `batching_params.pbtxt` into the folder of a version.

    Args:
        folder: of the version.
        max_batch: sentences in a request, at most.
        signatures: what `assets.extra/model_info.json` says of them.
    """
    inputs = [i for each in signatures.values() for i in each["inputs"].values()]
    # Only where it is needed: it does not check that ranks agree.
    pads = any(len(i["shape"]) > 1 for i in inputs)
    sizes = "".join(f"allowed_batch_sizes: {n}\n" for n in batch_sizes(max_batch))
    text = _BATCHING.format(max_batch=max_batch, pads=str(pads).lower(), sizes=sizes)
    (folder / BATCHING).write_text(text, "utf-8")


def batch_sizes(max_batch: int) -> list[int]:
    """Sizes that batches are filled up to: by at most a half, up to `max_batch`.

    Few sizes mean few shapes that the server prepares kernels for.
    """
    sizes, power = {max_batch}, 1
    while power < max_batch:
        sizes |= {power, min(power * 3 // 2, max_batch)}
        power *= 2
    return sorted(sizes)
