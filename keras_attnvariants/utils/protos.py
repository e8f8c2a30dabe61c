"""Protobuf messages that the package declares itself, with the fields that it uses.

Generated code of other packages needs TensorFlow, or certain releases of protobuf.
Undeclared fields are kept.
"""

from pathlib import Path
from types import SimpleNamespace

from google.protobuf import descriptor_pb2
from google.protobuf import descriptor_pool
from google.protobuf import message_factory
from google.protobuf import text_format


def message_classes(path: Path) -> SimpleNamespace:
    """The classes of messages, by name.

    Args:
        path: a `FileDescriptorProto` as text.
    """
    text = path.read_text("utf-8")
    file = text_format.Parse(text, descriptor_pb2.FileDescriptorProto())
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    found = message_factory.GetMessageClassesForFiles([file.name], pool)
    return SimpleNamespace(**{k.partition(".")[2]: c for k, c in found.items()})
