"""Corpora of short sentences: Multi30k and Tatoeba."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from keras_attnvariants.data.registry import register_corpus
from keras_attnvariants.data.sources.archives import member_lines
from keras_attnvariants.data.sources.archives import write_held_out
from keras_attnvariants.data.sources.download import download

_MULTI30K = (
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

_SHA256 = {
    "test_2016_flickr": {
        "cs": "200a4a74cc9560f051924abb9803be008d1908d77f747e9141aeb86dfd2797f1",
        "de": "9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8",
        "en": "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9",
        "fr": "6d326e188d259fb1d04ac19eae3af956559b3a0b93d7635e56c90987c40c8b90",
    },
    "test_2017_flickr": {
        "de": "a2c89666db00c495cd8513b9d708d5a3acc205d7de312ef2bf5fb7ebc1540aee",
        "en": "76a444ee25172e72695cddb13ae4a3bda59430617be88e0bb46b60504f054074",
        "fr": "3ba671ceb2299f3304ffafefea7a833d08632fbaf0ba18546f8a2ec2391af496",
    },
    "test_2017_mscoco": {
        "de": "799e4854c25d601cb6cb6be29eabe5667734c61ace2f495e03e429031a0bc338",
        "en": "aab300bfb4427697987e02cd0aacd44bfe8aa50456231b6474c08038bbed2b58",
        "fr": "754f3072ba9f124569ba5258b32730fc1d214bbf8e0c6dfb2b74401676220db0",
    },
    "test_2018_flickr": {
        "cs": "7d0a9db904f94c554a8c58049a9f3a5357c27f46cc3d710d70cb0b4a2585b8c2",
        "de": "ddd0130c7d97482dc5197a02141dae8dd79f20f03586c480d675c09a32daf608",
        "en": "ef4f4844037d4c5dea75c9a8ed5fd78905967a26f67c255e230cc9780032654d",
        "fr": "fb2b83fcceb937a4f7e3e93c1c51c22aba92f1e342391e6b5ba392b16a920501",
    },
    "train": {
        "cs": "a65adb8b32e3bc664f21ecba7a6e7f6950fd1f405e135f7c312faabdb6255077",
        "de": "726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6",
        "en": "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f",
        "fr": "622e75069e9f4c577425c4f277116ce66e63a2401c0a2312d90073cb12379a3c",
    },
    "val": {
        "cs": "b63226e05c4bd5dd6a42897d74b86a1b9d2c31498252c572b1ea7f7996927fcc",
        "de": "f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a",
        "en": "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28",
        "fr": "ca3106f1a72390591d25f6c45cb4cd39dec4cd3f123e099748a3ce5256c160e9",
    },
}


@register_corpus(
    "multi30k",
    languages=("cs", "de", "en", "fr"),
    origin=_MULTI30K,
    megabytes=2,
    digests=("sha256",),
    licence="non-commercial research and education",
)
def write_multi30k(into: Path, languages: tuple[str, str], downloads: Path) -> None:
    """Writes the splits of task 1; the tests of 2017 have no Czech."""
    splits = _SPLITS if "cs" in languages else _SPLITS | _SPLITS_WITHOUT_CZECH
    for name, split in splits.items():
        for language in languages:
            file = f"{name}.{language}.gz"
            path = download(
                f"{_MULTI30K}/{file}",
                into,
                downloads,
                checksum=f"sha256:{_SHA256[name][language]}",
                megabytes=2,
            )
            target = into / f"{split}.{language}.gz"
            if path.parent == into:
                path.replace(target)
            else:
                shutil.copyfile(path, target)


_TATOEBA = "https://object.pouta.csc.fi/OPUS-Tatoeba/v2023-04-12/moses"


@register_corpus(
    "tatoeba",
    languages=("cs", "de", "en", "es", "fr", "it", "ja", "nl", "pl", "pt", "ru", "tr"),
    origin=_TATOEBA,
    megabytes=20,
    digests=("first use",),
    licence="CC BY 2.0 FR",
)
def write_tatoeba(into: Path, languages: tuple[str, str], downloads: Path) -> None:
    """Writes 94 % for training, and 3 % each for validation and test.

    All translations of a sentence of the first language fall in one split.
    """
    pair = "-".join(languages)
    name = f"{pair}.txt.zip"
    with tempfile.TemporaryDirectory(dir=into) as folder:
        archive = download(f"{_TATOEBA}/{name}", Path(folder), downloads, name=name)
        sides = (member_lines(archive, f"Tatoeba.{pair}.{la}") for la in languages)
        pairs = ((texts[0], texts) for texts in zip(*sides, strict=True))
        write_held_out(into, languages, pairs)
