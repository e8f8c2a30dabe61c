"""The API reference: the public names of each folder, read without importing them.

`sphinx-autoapi` reads the sources. Folders whose names are imported on first use list
them in `_HOME`, with the module of each; here they become imports that it can see.
Modules are left out, because every public name is a name of its folder.

Docstrings are in Google's style, which napoleon reads. Their blocks of code and tables
are those of Markdown; here they become those of reStructuredText.
"""

import re
import sys
from typing import Any

import astroid
from docutils import nodes
from sphinx.transforms import SphinxTransform

PACKAGE = "keras_attnvariants"


def setup(app: Any) -> dict[str, bool]:
    """Registers the filter with Sphinx, and the reading of `_HOME` with astroid."""
    app.connect("autoapi-skip-member", is_skipped)
    app.connect("autodoc-process-docstring", to_restructured_text, priority=100)
    app.add_transform(ShortTitles)
    manager = astroid.manager.AstroidManager()
    # Managers that are created later take it from the brain.
    manager.module_denylist = manager.brain["module_denylist"] = Others()
    manager.register_transform(astroid.nodes.Module, with_late_imports, has_home)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


class Others(set[str]):
    """The modules of other projects, which are not read.

    Reading the imported modules of Keras and TensorFlow would take half of the time.
    """

    def __contains__(self, name: object) -> bool:
        top = str(name).partition(".")[0]
        return top != PACKAGE and top not in sys.stdlib_module_names and bool(top)


def is_skipped(
    app: Any, kind: str, name: str, obj: Any, skip: bool, options: list[str]
) -> bool | None:
    """Whether an object has no place in the reference; `None` for the default."""
    if kind == "module":
        return True
    if kind == "package":
        return name != PACKAGE and (name.count(".") > 1 or name.endswith(".utils"))
    if kind in ("data", "attribute") and not obj.docstring:
        return True
    return None


class ShortTitles(SphinxTransform):
    """Removes the folder of an object from the title of its page."""

    default_priority = 100

    def apply(self) -> None:
        if self.env.docname.startswith(self.config.autoapi_root):
            for title in list(self.document.findall(nodes.title))[:1]:
                name = title.astext().rpartition(".")[2]
                title.replace_self(nodes.title(name, name))


def has_home(module: astroid.nodes.Module) -> bool:
    """Whether a folder of the package imports its public names on first use."""
    is_folder = module.name.count(".") == 1 and module.package
    return is_folder and "_HOME" in module.locals


def with_late_imports(module: astroid.nodes.Module) -> astroid.nodes.Module:
    """Adds an import of each public name that `_HOME` lists."""
    [home] = [
        node.value
        for node in module.body
        if isinstance(node, astroid.nodes.Assign) and node.targets[0].name == "_HOME"
    ]
    names = {name.value: file.value for name, file in home.items}
    for name, file in names.items():
        line = f"from {module.name}.{file} import {name}"
        statement = astroid.parse(line).body[0]
        statement.parent = module
        module.body.append(statement)
        module.locals[name] = [statement]
    public = next(
        node
        for node in module.body
        if isinstance(node, astroid.nodes.Assign) and node.targets[0].name == "__all__"
    )
    others = [x.value for x in public.value.elts if isinstance(x, astroid.nodes.Const)]
    listed = astroid.parse(f"__all__ = {sorted([*others, *names])}").body[0]
    listed.parent = module
    module.body[module.body.index(public)] = listed
    module.locals["__all__"] = [listed.targets[0]]
    return module


def to_restructured_text(
    app: Any, kind: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Replaces Markdown in the lines of a docstring, in place."""
    text = "\n".join(lines)
    text = re.sub(r"^( *)```(\w*)\n(.*?)^ *```$", code_block, text, flags=re.M | re.S)
    text = re.sub(r"^( *\|.*[^|])\n +(?=[^|\n]*\|$)", r"\1 ", text, flags=re.M)
    # A list within a paragraph.
    text = re.sub(r"^( *)(\S.*)\n(?=\1 +- )", r"\1\2\n\n", text, flags=re.M)
    text = re.sub(r"(?:^ *\|.*\|$\n?){3,}", table, text, flags=re.M)
    # Arguments that share a description, on several lines.
    names = r"^( {4}(?:\*{0,2}\w+, )+\w[\w ,]*)\n +(?=[\w ,]+: )"
    text = re.sub(names, r"\1 ", text, flags=re.M)
    text = re.sub(r"^( {4}[\w, ]*\w) and (\w+: )", r"\1, \2", text, flags=re.M)
    # A block of text that is indented after a colon, unless it is a list or an example.
    text = re.sub(r":\n\n(?= {4}(?! *(?:[*-] |>>>)))", "::\n\n", text)
    lines[:] = text.split("\n")


def code_block(found: re.Match[str]) -> str:
    """The directive for a block between fences."""
    margin, language, code = found.groups()
    inner = "\n".join(f"    {line}".rstrip() for line in code.splitlines())
    return f"{margin}.. code-block:: {language or 'none'}\n\n{inner}\n"


def table(found: re.Match[str]) -> str:
    """The directive for a table, whose first row is its head."""
    margin = re.match(" *", found[0])[0]
    head, _, *rows = [line.strip() for line in found[0].splitlines()]
    text = [".. list-table::", "   :header-rows: 1", ""]
    for row in (head, *rows):
        for place, cell in enumerate(row.strip("|").split("|")):
            text.append(f"   {' ' if place else '*'} - {cell.strip()}")
    return "".join(f"{margin}{line}".rstrip() + "\n" for line in text)
