"""Files that appear as a whole, or not at all."""

from __future__ import annotations

import os
from pathlib import Path


def write_whole(file: Path, text: str) -> None:
    """Write a text file beside its place and rename it; its folder is created."""
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_name(f".{file.name}.{os.getpid()}.partial")
    partial.write_text(text)
    os.replace(partial, file)
