"""Settings of the site, which `make docs` builds from the pages and docstrings.

The source folder is the repository itself, so that relative links between pages, README
and programs work on the site as they do when the repository is browsed.
"""

import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY))

from docs.sphinx_parts import inventories  # noqa: E402

project = "keras_attnvariants"
extensions = [
    "myst_nb",  # pages in Markdown as well
    "sphinx.ext.napoleon",
    "sphinx.ext.intersphinx",
    "autoapi.extension",
    "docs.sphinx_parts.api",
    "docs.sphinx_parts.gallery",
    "docs.sphinx_parts.mathml",
    "docs.sphinx_parts.repository_links",
]
root_doc = "docs/index"
include_patterns = [
    *("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"),
    "docs/**.md",
    "docs/notebooks/*.ipynb",
    "docs/api/**.rst",
]
exclude_patterns = [
    ".*",
    "*.egg-info",
    *("benchmarks", "build", "dist", "keras_attnvariants", "recipes", "runs"),
    *("saved_models", "tests"),
]
suppress_warnings = [
    # Constants that are assigned in one statement and imported elsewhere.
    "autoapi.python_import_resolution",
    # Names that two classes share, such as `model`: they are shown without a link.
    "ref.python",
    # NaN in the JSON of TensorFlow Serving.
    "misc.highlighting_failure",
]

# Quotation marks and dashes stay as in the pages, such as the two of `--model`.
smartquotes = False
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
# Notebooks are shown with their stored outputs.
nb_execution_mode = "off"

# Names in single backticks become links if they belong to the package, Keras or Python.
default_role = "py:obj"
napoleon_numpy_docstring = False
napoleon_use_rtype = False
napoleon_custom_sections = [("Class attributes", "params_style")]
python_use_unqualified_type_names = True
toc_object_entries_show_parents = "hide"
python_maximum_signature_line_length = 88

autoapi_dirs = [str(REPOSITORY / "keras_attnvariants")]
autoapi_root = "docs/api"
autoapi_own_page_level = "class"
autoapi_add_toctree_entry = False
autoapi_options = [
    *("members", "imported-members", "show-inheritance", "show-module-summary"),
]

intersphinx_mapping = inventories.write(REPOSITORY / "build" / "inventories")

html_theme = "furo"
html_title = "keras_attnvariants"
html_static_path = ["sphinx_parts/static"]
html_css_files = ["site.css"]
templates_path = ["sphinx_parts/templates"]
html_additional_pages = {"index": "start.html"}
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_show_copyright = False
html_math_renderer = "mathml"
html_theme_options = {"source_edit_link": "", "source_view_link": ""}
pygments_style = "friendly"
pygments_dark_style = "monokai"
highlight_language = "none"
