"""Runs signatures of SavedModels; the modules named as arguments do not exist here.

Reads one request per line of standard input and answers each with a line, both JSON.
"""

import importlib
import json
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"

MODELS = 6


class Blocker:
    """Finds no module of the given names, wherever they may be installed."""

    def __init__(self, names: list[str]):
        self.names = names

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in self.names:
            raise ModuleNotFoundError(f"{name} is blocked", name=name)


def main() -> None:
    blocked = sys.argv[1:]
    sys.meta_path.insert(0, Blocker(blocked))
    for name in blocked:
        try:
            importlib.import_module(name)
        except ModuleNotFoundError:
            continue
        raise SystemExit(f"{name} can be imported")
    replies = sys.stdout
    sys.stdout = sys.stderr  # so that no other output is taken for a reply
    import tensorflow as tf

    if "tensorflow_text" not in blocked:
        import tensorflow_text  # noqa: F401
    loaded = {}
    for line in sys.stdin:
        request = json.loads(line)
        path = request["path"]
        # The models used last stay, as many as fit into memory.
        loaded[path] = loaded.pop(path, None) or tf.saved_model.load(path)
        while len(loaded) > MODELS:
            del loaded[next(iter(loaded))]
        try:
            reply = {"outputs": answer(tf, loaded[path], request)}
        except Exception as error:
            reply = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(reply), file=replies, flush=True)


def answer(tf, model, request: dict) -> dict:
    """The result of a signature, as a JSON value."""
    inputs = {
        name: tf.reshape(
            tf.constant(
                [v.encode("latin-1") if isinstance(v, str) else v for v in x["values"]],
                x["dtype"],
            ),
            x["shape"],
        )
        for name, x in request["inputs"].items()
    }
    outputs = model.signatures[request["signature"]](**inputs)
    return {
        name: {
            "dtype": tensor.dtype.name,
            "shape": tensor.shape.as_list(),
            "values": [
                value.decode("latin-1") if isinstance(value, bytes) else value
                for value in tensor.numpy().ravel().tolist()
            ],
        }
        for name, tensor in outputs.items()
    }


if __name__ == "__main__":
    main()
