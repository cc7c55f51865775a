"""Commands and settings in the project's pages, in the form in which they can be checked."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import NamedTuple

from tests.docs.pages import COMMITTED, ROOT, fenced

README = ROOT / "README.md"
WITH_CODE = [README, *COMMITTED]


class Snippet(NamedTuple):
    """A fenced block: its page, its number among those of its language there, and its text."""

    page: str
    number: int
    text: str

    def __str__(self):
        return f"{self.page}-{self.number}"


class Command(NamedTuple):
    """A command of a page, as words."""

    page: str
    words: tuple[str, ...]

    def __str__(self):
        return f"{self.page}: {' '.join(self.words)}"


def snippets(language):
    """All blocks of a language, page by page."""
    found = []
    for page in WITH_CODE:
        texts = [text for name, text in fenced(page.read_text()) if name == language]
        found += [Snippet(page.stem, number, text) for number, text in enumerate(texts)]
    return found


def commands():
    """All commands of the blocks of bash."""
    found = []
    for snippet in snippets("bash"):
        for line in snippet.text.replace("\\\n", " ").splitlines():
            for words in _split(shlex.split(line, comments=True)):
                found.append(Command(snippet.page, tuple(words)))
    return found


def _split(words):
    """Commands joined by && are several; variables before one and the environment's path go."""
    part = []
    for word in [*words, "&&"]:
        if word != "&&":
            part.append(word)
            continue
        while part and re.fullmatch(r"[A-Z_]+=\S*", part[0]):
            part.pop(0)
        if part:
            yield [part[0].removeprefix(".venv/bin/"), *part[1:]]
        part = []


def parts(snippet):
    """A block of settings that shows several alternatives, each with a heading; else the block."""
    pieces = re.split(r"\n\n(?=# )", snippet.text)
    keys = re.findall(r"^(\w+):", snippet.text, re.MULTILINE)
    return pieces if len(set(keys)) < len(keys) else [snippet.text]


def example(name):
    """The path of an example."""
    return Path(ROOT / "tuned_examples" / f"{name}.yaml")
