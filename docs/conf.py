"""Configuration of the documentation's site: `sphinx-build -W docs build/site`."""

from __future__ import annotations

from typing import Any

from rllib_minestudio import __version__

project = "rllib_minestudio"
author = "The rllib_minestudio developers"
release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
html_title = f"rllib_minestudio {release}"

# Headings of these levels can be linked to, under GitHub's names for them.
myst_heading_anchors = 4
myst_enable_extensions = ["deflist"]

# Docstrings are written for readers of the code: single backticks are code there.
default_role = "code"
napoleon_numpy_docstring = False
napoleon_use_ivar = True
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_default_options = {"members": True, "show-inheritance": True}

INCLUDED = {
    "../benchmarks/RESULTS.md": "benchmarks.md",
    "../rllib_minestudio/priors/hunter_nano/README.md": "hunter_nano.md",
    "../rllib_minestudio/priors/toolmaker_gru/README.md": "toolmaker_gru.md",
}
"""Pages outside of docs/, as its pages link to them, and the pages here that include them."""


def link_to_included(app: Any, page: str, source: list[str]) -> None:
    """Let a page's links lead to the site's copy of what lies outside of it."""
    for outside, here in INCLUDED.items():
        source[0] = source[0].replace(f"]({outside}", f"]({here}")


def setup(app: Any) -> None:
    """Register the hook with Sphinx."""
    app.connect("source-read", link_to_included)
