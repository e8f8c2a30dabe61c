"""Multi30k: image captions in four languages (Elliott et al., 2016)."""

from __future__ import annotations

import shutil
from pathlib import Path

from keras_attnvariants.data.registry import register_corpus
from keras_attnvariants.data.sources.download import download

_ORIGIN = (
    "https://raw.githubusercontent.com/multi30k/dataset/"
    "a3d2e0d26b56f3846f66a952536ffed4e401d05a/data/task1/raw"
)
_SPLITS = {
    "train": "train",
    "val": "validation",
    "test_2016_flickr": "test2016",
    "test_2018_flickr": "test2018",
}
_SPLITS_WITHOUT_CZECH = {
    "test_2017_flickr": "test2017",
    "test_2017_mscoco": "testcoco2017",
}


@register_corpus(
    "multi30k",
    languages=("cs", "de", "en", "fr"),
    origin=_ORIGIN,
    megabytes=2,
    licence="non-commercial research and education",
)
def write_multi30k(into: Path, languages: tuple[str, str], downloads: Path) -> None:
    """Writes the splits of task 1; the tests of 2017 have no Czech."""
    splits = _SPLITS if "cs" in languages else _SPLITS | _SPLITS_WITHOUT_CZECH
    for name, split in splits.items():
        for language in languages:
            file = f"{name}.{language}.gz"
            path = download(f"{_ORIGIN}/{file}", into, downloads)
            target = into / f"{split}.{language}.gz"
            if path.parent == into:
                path.replace(target)
            else:
                shutil.copyfile(path, target)
