"""The project's Markdown, as the tests of docs read it."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from tools.reference.pages import PAGES as GENERATED

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
COMMITTED = [page for page in sorted(DOCS.glob("*.md")) if page.name not in GENERATED]
"""The pages of docs/; those that are generated may lie there, too, after a build of the site."""
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    ROOT / "benchmarks" / "RESULTS.md",
    *COMMITTED,
    *sorted(ROOT.glob("rllib_minestudio/priors/*/README.md")),
]

_FENCE = re.compile(r"^( *)```(\w*)[^\n]*\n(.*?)^\1```", re.MULTILINE | re.DOTALL)


def fenced(text: str) -> list[tuple[str, str]]:
    """The fenced blocks with their languages, in order."""
    return [(language, block) for _, language, block in _FENCE.findall(text)]


def blocks(text: str, language: str) -> list[str]:
    """The fenced blocks of a language, in order."""
    return [block for name, block in fenced(text) if name == language]


def without_code(text: str) -> str:
    """A page without fenced blocks and code spans, in which nothing is a link or a heading."""
    return re.sub(r"`[^`\n]+`", "`code`", _FENCE.sub("", text))


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    seen: Counter[str] = Counter()
    found = set()
    for heading in re.findall(r"^#{1,6} +(.+?) *$", _FENCE.sub("", text), re.MULTILINE):
        name = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        found.add(f"{name}-{seen[name]}" if seen[name] else name)
        seen[name] += 1
    return found
