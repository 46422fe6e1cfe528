"""How `make docs` makes a site of the Markdown pages and the docstrings: Sphinx's settings, and the order of the pages.

Pages are plain Markdown, and what a site needs beyond that is added while it is built. Nothing is asked of any other
machine, then or when the site is read.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from docs.extensions.sources import linkcode_resolve  # noqa: E402, F401  (sphinx.ext.linkcode asks for it by name)
from factordiff import __version__, types  # noqa: E402

project = "FactorDiff"
release = __version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.linkcode",
    "docs.extensions.navigation",
    "docs.extensions.formulas",
    "docs.extensions.api",
    "docs.extensions.symbols",
    "docs.extensions.sources",
    "docs.extensions.excerpts",
]

# The README is the first page; the repository is the source, so that links between files are links between pages.
root_doc = "README"
include_patterns = [
    "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/**.md", "src/factordiff/weights/*/README.md",
]  # fmt: skip
exclude_patterns = [".git", ".venv", "build", "data", "dist", "out", "runs", "tests"]

# Who reads on, reads in this order. Each page that lists others: headings of the sidebar, and pages with short titles.
navigation = {
    "README": {
        "Use it": [
            "Guide <docs/guide>",
            "Playground <docs/playground>",
            "Its server and API <docs/playground-api>",
            "Worlds: which method when <docs/worlds>",
            "Methods <docs/methods>",
            "Routers <docs/routers>",
            "Sampling fast <docs/sampling>",
        ],
        "Bring your own": [
            "Your own expert <docs/own-expert>",
            "Your own data <docs/own-data>",
            "Language models <docs/language-models>",
        ],
        "What was found": [
            "Results <docs/results/README>",
            "Making the report <docs/reproducing>",
            "Which compositions are exact <docs/exactness>",
            "The data <docs/data>",
            "Training runs <docs/training/README>",
            "Log <docs/log>",
        ],
        "The paper": [
            "From the paper to the code <docs/paper-map>",
            "Questions and answers <docs/faq>",
        ],
        "Reference": [
            "API reference <docs/api/README>",
            "Files <docs/tree>",
            "Contributing <CONTRIBUTING>",
            "Changes <CHANGELOG>",
        ],
    },
    "docs/training/README": {"": ["src/factordiff/weights/*/README"]},
    "docs/api/README": {
        "": [
            "docs/api/teams",
            "docs/api/experts",
            "docs/api/composition",
            "docs/api/sampling",
            "docs/api/fitting",
            "docs/api/worlds",
            "docs/api/engine",
            "docs/api/basics",
        ],
    },
}

myst_enable_extensions = ["dollarmath", "html_image"]
myst_heading_anchors = 4
suppress_warnings = ["myst.header"]  # a page may begin a section two levels down

default_role = "literal"  # in docstrings `x` is code, as in Markdown
autodoc_class_signature = "mixed"
autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_preserve_defaults = True
autodoc_typehints_format = "short"
autodoc_type_aliases = {name: name for name in vars(types) if name[0].isupper()}
add_module_names = False
python_use_unqualified_type_names = True
maximum_signature_line_length = 110
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_title = "FactorDiff"
pygments_dark_style = "github-dark"
html_math_renderer = "drawn"
html_favicon = str(ROOT / "src/factordiff/web/static/icon.svg")
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_use_index = False
html_domain_indices = False
BRAND = (
    "color-brand-primary",
    "color-brand-content",
    "color-brand-visited",
    "color-api-name",
    "color-api-pre-name",
)
html_theme_options = {
    "light_css_variables": dict.fromkeys(BRAND, "#0b6f64"),
    "dark_css_variables": dict.fromkeys(BRAND, "#5fd0c0"),
}
