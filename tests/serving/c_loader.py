"""Translates with an export through TensorFlow's C API alone, as a C++ program would.

    python tests/serving/c_loader.py FOLDER INPUT OUTPUT TEXT…

INPUT and OUTPUT are the names of a signature's tensors. Prints one translation a line.
It needs only Python's standard library; TensorFlow is located, but not imported.
"""

import ctypes
import importlib.util
import sys
from ctypes import POINTER
from ctypes import byref
from ctypes import c_char_p
from ctypes import c_int
from ctypes import c_int64
from ctypes import c_size_t
from ctypes import c_void_p
from pathlib import Path

STRING = 7  # TF_STRING
STRING_SIZE = 24  # bytes of a TF_TString


class Output(ctypes.Structure):
    """`TF_Output`: one of the results of a node."""

    _fields_ = (("operation", c_void_p), ("index", c_int))


# Arguments and result of each function.
FUNCTIONS = {
    "TF_NewStatus": ([], c_void_p),
    "TF_GetCode": ([c_void_p], c_int),
    "TF_Message": ([c_void_p], c_char_p),
    "TF_LoadLibrary": ([c_char_p, c_void_p], c_void_p),
    "TF_NewGraph": ([], c_void_p),
    "TF_NewSessionOptions": ([], c_void_p),
    "TF_LoadSessionFromSavedModel": (
        [c_void_p, c_void_p, c_char_p, POINTER(c_char_p), c_int]
        + [c_void_p, c_void_p, c_void_p],
        c_void_p,
    ),
    "TF_GraphOperationByName": ([c_void_p, c_char_p], c_void_p),
    "TF_AllocateTensor": ([c_int, POINTER(c_int64), c_int, c_size_t], c_void_p),
    "TF_TensorData": ([c_void_p], c_void_p),
    "TF_StringInit": ([c_void_p], None),
    "TF_StringCopy": ([c_void_p, c_char_p, c_size_t], None),
    "TF_StringGetDataPointer": ([c_void_p], c_void_p),
    "TF_StringGetSize": ([c_void_p], c_size_t),
    "TF_SessionRun": (
        [c_void_p, c_void_p]
        + [POINTER(Output), POINTER(c_void_p), c_int]
        + [POINTER(Output), POINTER(c_void_p), c_int]
        + [c_void_p, c_int, c_void_p, c_void_p],
        None,
    ),
}


def folder_of(package: str) -> Path:
    return Path(importlib.util.find_spec(package).origin).parent


class TensorFlow:
    """The functions of the C API; each raises if it fails."""

    def __init__(self):
        library = ctypes.CDLL(
            str(folder_of("tensorflow") / "libtensorflow_cc.so.2"), ctypes.RTLD_GLOBAL
        )
        for name, (takes, returns) in FUNCTIONS.items():
            function = getattr(library, name)
            function.argtypes, function.restype = takes, returns
            setattr(self, name.removeprefix("TF_"), function)
        self.status = self.NewStatus()

    def check(self) -> None:
        if self.GetCode(self.status):
            raise SystemExit(self.Message(self.status).decode())

    def load(self, folder: str) -> tuple[int, int]:
        """Session and graph of a SavedModel that may use TensorFlow Text."""
        text = folder_of("tensorflow_text") / "python/ops/_sentencepiece_tokenizer.so"
        self.LoadLibrary(str(text).encode(), self.status)
        self.check()
        graph, options = self.NewGraph(), self.NewSessionOptions()
        tags = (c_char_p * 1)(b"serve")
        session = self.LoadSessionFromSavedModel(
            options, None, folder.encode(), tags, 1, graph, None, self.status
        )
        self.check()
        return session, graph

    def node(self, graph: int, tensor: str) -> Output:
        name, _, index = tensor.partition(":")
        operation = self.GraphOperationByName(graph, name.encode())
        assert operation, f"no node {name}"
        return Output(operation, int(index))

    def tensor_of(self, texts: list[bytes]) -> int:
        """A tensor of strings `[B]`."""
        count = len(texts)
        tensor = self.AllocateTensor(
            STRING, byref(c_int64(count)), 1, STRING_SIZE * count
        )
        data = self.TensorData(tensor)
        for number, text in enumerate(texts):
            self.StringInit(data + STRING_SIZE * number)
            self.StringCopy(data + STRING_SIZE * number, text, len(text))
        return tensor

    def texts_of(self, tensor: int, count: int) -> list[bytes]:
        data = self.TensorData(tensor)
        strings = [data + STRING_SIZE * number for number in range(count)]
        return [
            ctypes.string_at(self.StringGetDataPointer(s), self.StringGetSize(s))
            for s in strings
        ]

    def run(self, session: int, given: Output, wanted: Output, tensor: int) -> int:
        found = c_void_p()
        self.SessionRun(
            session,
            None,
            byref(given),
            byref(c_void_p(tensor)),
            1,
            byref(wanted),
            byref(found),
            1,
            None,
            0,
            None,
            self.status,
        )
        self.check()
        return found.value


def main(folder: str, given: str, wanted: str, *texts: str) -> None:
    api = TensorFlow()
    session, graph = api.load(folder)
    tensor = api.tensor_of([text.encode() for text in texts])
    nodes = api.node(graph, given), api.node(graph, wanted)
    found = api.run(session, *nodes, tensor)
    for translation in api.texts_of(found, len(texts)):
        print(translation.decode())
    assert "tensorflow" not in sys.modules


if __name__ == "__main__":
    main(*sys.argv[1:])
