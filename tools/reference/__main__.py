"""Writes the reference pages: `python -m tools.reference FOLDER`."""

from __future__ import annotations

import sys
from pathlib import Path

from tools.reference.pages import write

if __name__ == "__main__":
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_dir():
        sys.exit("usage: python -m tools.reference FOLDER")
    write(Path(sys.argv[1]))
