"""Writes the generated pages: `python -m tools.reference docs`."""

from __future__ import annotations

import sys
from pathlib import Path

from tools.reference.pages import PAGES


def write(folder: Path) -> None:
    """Write every page into a folder that exists."""
    for name, page in PAGES.items():
        (folder / name).write_text(page())


if __name__ == "__main__":
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_dir():
        sys.exit("usage: python -m tools.reference FOLDER (such as docs)")
    write(Path(sys.argv[1]))
