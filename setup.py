"""Adds to setup.cfg the folder of experiment files, and README as a package index can show it."""

from __future__ import annotations

import re
from configparser import ConfigParser
from pathlib import Path

from setuptools import find_packages, setup

ROOT = Path(__file__).parent

CODE = r"```.*?```|`[^`\n]+`"
RELATIVE_LINK = r"(!?)\[([^\]]*)\]\((?!https?:)([^)\s]+)\)"
CODE_OR_LINK = re.compile(f"{CODE}|{RELATIVE_LINK}", re.DOTALL)


def long_description(readme: str, source: str | None) -> str:
    """README without relative links, which lead nowhere from a package index.

    Args:
        readme: Its Markdown.
        source: The repository's address, below which its links and pictures are found; with None,
            links are reduced to their text, and pictures to their description.
    """

    def absolute(match: re.Match[str]) -> str:
        is_picture, text, path = match.groups()
        if path is None:
            return match[0]  # code
        if source is None:
            return f"*{text}.*" if is_picture else text
        return f"{is_picture}[{text}]({source}/{'raw' if is_picture else 'blob'}/HEAD/{path})"

    return CODE_OR_LINK.sub(absolute, readme)


def source_address(setup_cfg: str) -> str | None:
    """The `Source` among the project_urls of a setup.cfg, if it has one."""
    config = ConfigParser()
    config.read_string(setup_cfg)
    urls = config.get("metadata", "project_urls", fallback="")
    found = re.search(r"^Source\s*=\s*(\S+?)/?$", urls, re.MULTILINE)
    return found[1] if found else None


if __name__ == "__main__":
    setup(
        packages=[*find_packages(include=["rllib_minestudio*"]), "rllib_minestudio.tuned_examples"],
        long_description=long_description(
            (ROOT / "README.md").read_text(encoding="utf-8"),
            source_address((ROOT / "setup.cfg").read_text(encoding="utf-8")),
        ),
        long_description_content_type="text/markdown",
    )
