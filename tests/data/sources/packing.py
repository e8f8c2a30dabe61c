"""Small archives in the formats of the real ones."""

import io
import tarfile
import zipfile


def tar_bytes(files, mode="w:gz"):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def zip_bytes(files):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def text(*lines):
    return "".join(line + "\n" for line in lines).encode()


def test_set(*lines):
    """Bytes of a test set in the XML of translation campaigns."""
    segments = [f'<seg id="{i}"> {line} </seg>' for i, line in enumerate(lines, 1)]
    return text('<?xml version="1.0"?>', '<doc docid="1">', *segments, "</doc>")


def pairs(corpus) -> dict[str, list[tuple[str, str]]]:
    """The pairs of sentences of each split."""
    return {
        split: list(zip(*corpus.read_lines(split), strict=True))
        for split in corpus.splits
    }
