"""Links to the pages of Python and Keras about names that docstrings mention.

The names are in `inventories.toml`; nothing is fetched.
"""

import tomllib
import zlib
from pathlib import Path

TABLE = Path(__file__).with_name("inventories.toml")


def names() -> dict[str, dict[str, str]]:
    """The places of names on the site of each project, relative to its address."""
    found = {}
    for project, table in tomllib.loads(TABLE.read_text("utf-8")).items():
        places = dict(table.get("places", {}))
        for module, classes in table.get("modules", {}).items():
            for name in classes:
                places[f"{module}.{name}"] = f"{module}.html#{module}.{name}"
        found[project] = places
    return found


def write(folder: Path) -> dict[str, tuple[str, str]]:
    """Writes an inventory for each project, in the form that intersphinx reads.

    Returns:
        The address and inventory of each project: a value of `intersphinx_mapping`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    table = tomllib.loads(TABLE.read_text("utf-8"))
    mapping = {}
    for project, places in names().items():
        head = f"# Sphinx inventory version 2\n# Project: {project}\n# Version: \n"
        head += "# The remainder of this file is compressed using zlib.\n"
        lines = [
            f"{name} py:class 1 {place} -\n" for name, place in sorted(places.items())
        ]
        path = folder / f"{project}.inv"
        path.write_bytes(head.encode() + zlib.compress("".join(lines).encode()))
        mapping[project] = (table[project]["address"], str(path))
    return mapping
