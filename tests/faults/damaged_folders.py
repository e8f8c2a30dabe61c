"""Damages folders in many ways, and checks what the commands say about them.

    python -m tests.faults.damaged_folders --count 1000

Runs, models, SavedModels and corpora are damaged one file or folder at a time: random
bytes, other types and sizes, links, pipes, and missing files; in every other case the
manifest is made to match. Then `kav translate`, `train`, `export` and `doctor` are
given the folder. Each must end with status 0, or say in a line what is wrong: no
traceback, no signal, no hang, and no more than 10 seconds of computing or 1 GB above
what the intact folder takes. A folder beside it, to which the links lead, must not
change.
"""

import argparse
import collections
import hashlib
import json
import os
import random
import shutil
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from tests.forks import Forks
from tests.toy_runs import write_corpus

SECONDS = 10
BYTES = 10**9
# The smallest graph.
EXPORT = ("--precision=float32", "--beam-size=1", "--signature=nbest")
LANGUAGES = ("--source=xx", "--target=yy")
MANIFEST = "manifest.json"
# Values that replace a number or a text in a JSON file.
VALUES = [None, True, -1, 0, 10**9, 1e308, "", "x", "../../x", [], {}, [[]], {"a": 1}]


class Outcome(NamedTuple):
    """The end of a command: status, seconds of computing, bytes, and its output."""

    status: int | None
    seconds: float
    memory: int
    text: str


class Commands:
    """The commands of `kav`, each in a process of its own."""

    def __init__(self, forks, folder, corpus):
        self.forks = forks
        self.folder = folder
        self.corpus = corpus

    def __call__(self, *arguments):
        # So that rich does not wrap lines.
        environment = {"COLUMNS": "5000", "XDG_CACHE_HOME": str(self.folder / "cache")}
        process = self.forks.start(
            "keras_attnvariants", *arguments, cwd=self.folder, **environment
        )
        begin, seconds, memory = time.monotonic(), 0, 0
        while process.poll() is None:
            seconds = max(seconds, computed(process.pid))
            memory = max(memory, resident(process.pid))
            if time.monotonic() - begin > 12 * SECONDS:
                process.kill()
                process.wait()
                return Outcome(None, 12 * SECONDS, memory, "killed")
            time.sleep(0.02)
        text = "".join(process.communicate())
        return Outcome(process.returncode, seconds, memory, text)

    def training(self, corpus, run, steps):
        """The arguments of `kav train`, for a tiny model."""
        sizes = ("--width=8", "--layers=1", "--heads=2", "--feed-forward=16")
        preset = ("--preset=kav/base/multi30k", "--vocabulary-size=50")
        quick = ("--samples=0", "--score-sentences=0", f"--steps={steps}")
        options = ("--batch-tokens=512", "--precision=float32", *quick)
        where = (f"--data={corpus}", f"--run={run}")
        return ("train", *where, *LANGUAGES, *preset, *sizes, *options)

    def of(self, kind, path):
        """The commands that take a folder of a kind, as lists of arguments."""
        output = self.folder / "output"
        if kind == "corpus":
            run = self.folder / "new-run"
            return [self.training(path, run, 1), ("doctor", path, *LANGUAGES)]
        if kind == "saved":
            return [("doctor", path), ("translate", f"--saved-model={path}", "a b")]
        found = [
            ("translate", f"--model={path}", "a b", "--beam-size=1"),
            ("export", f"--model={path}", f"--output={output}", *EXPORT),
            ("doctor", path),
        ]
        if kind == "run":
            found.insert(0, self.training(self.corpus, path, 2))
        return found


def computed(pid):
    """CPU seconds of a process: others may use the machine as well."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident(pid):
    """Bytes of memory that a process shares with no other."""
    try:
        fields = Path(f"/proc/{pid}/statm").read_text().split()
    except OSError:
        return 0
    pages = int(fields[1]) - int(fields[2]) if len(fields) > 2 else 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def digest(folder):
    """Names, kinds and contents of all that is in a folder."""
    parts = []
    for path in sorted(folder.rglob("*")):
        content = path.read_bytes() if path.is_file() else b""
        mode = path.lstat().st_mode
        parts.append(f"{path} {mode} {hashlib.sha256(content).hexdigest()}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def flip(path, draw, beside):
    data = bytearray(path.read_bytes() or b"x")
    for _ in range(draw.randint(1, 8)):
        data[draw.randrange(len(data))] = draw.randrange(256)
    path.write_bytes(data)


def truncate(path, draw, beside):
    os.truncate(path, draw.randint(0, max(0, path.stat().st_size - 1)))


def extend(path, draw, beside):
    path.write_bytes(path.read_bytes() + draw.randbytes(draw.randint(1, 3_000)))


def replace(path, draw, beside):
    path.write_bytes(draw.randbytes(draw.choice([0, 1, 100, 10_000])))


def enlarge(path, draw, beside):
    os.truncate(path, 3 * 10**9)  # takes no place on the disk


def remove(path, draw, beside):
    path.unlink()


def remove_folder(path, draw, beside):
    """Removes the folder of a file."""
    shutil.rmtree(path.parent)


def add_file(path, draw, beside):
    """Adds a file that no manifest lists."""
    (path.parent / draw.choice(["more", ".more", "a b.h5", "\N{BELL}"])).touch()


def make_folder(path, draw, beside):
    path.unlink()
    path.mkdir()


def make_pipe(path, draw, beside):
    path.unlink()
    os.mkfifo(path)


def link(path, draw, beside):
    """Moves a file elsewhere, and leaves a link to it."""
    target = beside / f"{len(list(beside.iterdir()))}-{path.name}"
    shutil.move(path, target)
    path.symlink_to(target)


def link_to_nothing(path, draw, beside):
    path.unlink()
    path.symlink_to(beside / "nothing")


def link_folder(path, draw, beside):
    """Moves the folder of a file elsewhere, and leaves a link to it."""
    link(path.parent, draw, beside)


def change_value(path, draw, beside):
    """Changes, removes or adds a value of a JSON file."""
    try:
        lines = path.read_text("utf-8").splitlines(keepends=True)
        place = draw.randrange(len(lines)) if path.suffix == ".jsonl" else None
        data = json.loads("".join(lines) if place is None else lines[place])
    except ValueError:
        return flip(path, draw, beside)
    holders = list(containers(data))
    holder = draw.choice(holders)
    keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
    if not keys:
        return replace(path, draw, beside)
    key = draw.choice(keys)
    if draw.random() < 0.2:
        del holder[key]
    else:
        holder[key] = draw.choice(VALUES)
    text = json.dumps(data)
    if draw.random() < 0.05:
        text = "[" * 100_000 + text
    if place is None:
        path.write_text(text)
    else:
        lines[place] = text + "\n"
        path.write_text("".join(lines))
    return None


def containers(data):
    """The dicts and lists in a JSON value that are not empty."""
    if isinstance(data, (dict, list)) and data:
        yield data
        for part in data.values() if isinstance(data, dict) else data:
            yield from containers(part)


DAMAGES = [
    *[flip, truncate, extend, replace, enlarge, remove, remove_folder, add_file],
    *[make_folder, make_pipe, link, link_to_nothing, link_folder],
]


def damage(folder, draw, beside):
    """Damages a file or folder; returns what was done, in words."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    path = draw.choice(files)
    is_json = path.suffix in (".json", ".jsonl")
    change = change_value if is_json and draw.random() < 0.6 else draw.choice(DAMAGES)
    if change in (link_folder, remove_folder) and path.parent == folder:
        change = link if change is link_folder else remove
    name = str(path.relative_to(folder))
    change(path, draw, beside)
    matched = draw.random() < 0.5 and match_manifest(folder, path)
    return f"{change.__name__} {name}{', manifest matches' if matched else ''}"


def match_manifest(folder, path):
    """Makes the manifest match a file; returns whether it does."""
    for parent in path.parents:
        manifest = parent / MANIFEST
        if manifest.is_file() and not manifest.is_symlink():
            break
        if parent == folder:
            return False
    else:
        return False
    if path == manifest or not path.is_file() or path.stat().st_size > 10**8:
        return False
    entries = json.loads(manifest.read_text())
    name = path.relative_to(parent).as_posix()
    if name not in entries:
        return False
    data = path.read_bytes()
    found = {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    entries[name] |= found
    manifest.write_text(json.dumps(entries, indent=1))
    return True


def faults_of(outcome, usual):
    """Faults in the end of a command, in words."""
    if outcome.status is None or outcome.seconds > usual.seconds + SECONDS:
        yield f"took {outcome.seconds:.0f} s"
    elif outcome.status < 0:
        yield f"was ended by signal {-outcome.status}"
    if "Traceback (most recent call last)" in outcome.text:
        yield "printed a traceback"
    if outcome.memory > usual.memory + BYTES:
        yield f"took {outcome.memory / 1e9:.1f} GB"
    errors = [x for x in outcome.text.splitlines() if x.startswith("Error: ")]
    if outcome.status == 2 and len(errors) != 1:
        yield "said nothing, or too much"


def make_folders(commands, originals):
    """An intact folder of each kind."""
    corpus = originals / "corpus"
    run, saved = originals / "run", originals / "saved"
    for arguments in (
        commands.training(corpus, run, 2),
        ("export", f"--model={run}", f"--output={saved}", *EXPORT),
    ):
        made = commands(*arguments)
        assert made.status == 0, made.text
    return {"model": run / "best", "run": run, "saved": saved / "1", "corpus": corpus}


def disturb(commands, count, seed):
    """Damages a number of folders; returns the number of commands that went wrong."""
    originals = commands.folder / "originals"
    folders = make_folders(commands, originals)
    usual, wrong = {}, 0
    statuses = collections.Counter()
    for number in range(-len(folders), count):
        kind = list(folders)[number % len(folders)]
        draw = random.Random(seed * 1_000_003 + number)
        with tempfile.TemporaryDirectory(dir=commands.folder) as place:
            path, beside = Path(place) / kind, Path(place) / "beside"
            shutil.copytree(folders[kind], path, symlinks=True)
            beside.mkdir()
            done = "nothing" if number < 0 else damage(path, draw, beside)
            before = digest(beside)
            for arguments in commands.of(kind, path):
                key = kind, arguments[0]
                found = commands(*arguments)
                if number < 0:
                    assert found.status == 0, found.text
                usual.setdefault(key, found)
                faults = list(faults_of(found, usual[key]))
                if digest(beside) != before:
                    faults.append("changed the target of a link")
                statuses[arguments[0], found.status] += 1
                if faults:
                    wrong += 1
                    told = f"{number} {kind}: {done}; kav {arguments[0]}"
                    print(f"{told} {' and '.join(faults)}", flush=True)
                    print(found.text[-1500:], flush=True)
            for name in ("output", "new-run"):
                shutil.rmtree(commands.folder / name, ignore_errors=True)
        if number % 20 == 19:
            print(f"{number + 1} folders, {wrong} commands went wrong", flush=True)
    for (command, status), times in sorted(statuses.items(), key=str):
        print(f"kav {command} ended {times} times with status {status}")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=1000, help="folders (1000)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the damages (1)")
    options = parser.parse_args()
    modules = "tests.training.toy", "keras_attnvariants.cli"
    with (
        tempfile.TemporaryDirectory() as folder,
        Forks(*modules, TF_CPP_MIN_LOG_LEVEL="3") as forks,
    ):
        place = Path(folder)
        corpus = place / "originals" / "corpus"
        corpus.mkdir(parents=True)
        commands = Commands(forks, place, write_corpus(corpus))
        wrong = disturb(commands, options.count, options.seed)
    print(f"{options.count} damaged folders, {wrong} commands went wrong")
    raise SystemExit(wrong > 0)


if __name__ == "__main__":
    main()
