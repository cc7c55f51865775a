"""Configuration of the documentation's site: `sphinx-build -W docs build/site`."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # for `tools`, which is not installed

from rllib_minestudio import __version__  # noqa: E402
from tools.reference.pages import write  # noqa: E402

project = "rllib_minestudio"
author = "The rllib_minestudio developers"
project_copyright = author
release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
]
html_theme = "furo"
html_title = "rllib_minestudio"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_theme_options = {"top_of_page_buttons": []}
html_extra_path = ["videos"]  # next to the pages

# Headings of these levels can be linked to, under GitHub's names for them.
myst_heading_anchors = 4
myst_enable_extensions = ["attrs_block", "colon_fence", "deflist"]

# What a copy button leaves out.
copybutton_prompt_text = "$ "
copybutton_exclude = ".linenos, .gp, .go"

highlight_language = "text"  # of blocks that name none

# Docstrings are written for readers of the code: single backticks are code there.
default_role = "code"
napoleon_numpy_docstring = False
napoleon_use_ivar = True
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_default_options = {"members": True, "show-inheritance": True}

ONLY_HERE = {
    "../benchmarks/RESULTS.md": "benchmarks.md",
    "../rllib_minestudio/priors/hunter_nano/README.md": "hunter_nano.md",
    "../rllib_minestudio/priors/toolmaker_gru/README.md": "toolmaker_gru.md",
    "reference.md#options": "options.md",
    "reference.md#rllibs-settings": "rllib_settings.md",
    "reference.md#commands": "commands.md",
    "reference.md#benchmark-tasks": "benchmark_tasks.md",
    "reference.md#blocks-and-items": "blocks.md",
}
"""What pages link to, for readers of the repository, and the page that the site has for it."""


FILM = re.compile(r"^\[(.+)\]\(videos/(\w+\.mp4)\)$", re.MULTILINE)
"""A link to a film, on a line of its own; the site plays it."""
PLAYER = r"""<figure class="film">
<video controls muted loop playsinline preload="metadata" src="\2"></video>
<figcaption>\1</figcaption>
</figure>"""

STACKED = {
    "| Option | Default |": "{.stacked .with-default}",
    "| Argument | Default |": "{.stacked .with-default}",
    "| Settings | What": "{.stacked}",
    "| Task | Text |": "{.stacked}",
    "| Path | Unit |": "{.stacked .paths}",
}
"""Beginnings of tables whose rows are set one below the other on a phone, and their classes."""


def write_reference(app: Any) -> None:
    """Generate the reference pages next to the others, before Sphinx looks for pages."""
    write(Path(app.srcdir))


def link_within_the_site(app: Any, page: str, source: list[str]) -> None:
    """Let a page's links lead to what only the site has, play its films, and name its tables."""
    for elsewhere, here in ONLY_HERE.items():
        source[0] = source[0].replace(f"]({elsewhere}", f"]({here}")
    source[0] = FILM.sub(PLAYER, source[0])
    for table, classes in STACKED.items():
        source[0] = source[0].replace(f"\n{table}", f"\n{classes}\n{table}")


def setup(app: Any) -> None:
    """Register the hooks with Sphinx."""
    app.connect("builder-inited", write_reference)
    app.connect("source-read", link_within_the_site)
