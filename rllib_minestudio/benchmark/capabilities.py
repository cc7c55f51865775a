"""What tasks need and an engine lacks, by name: a task that needs one of these is marked."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from rllib_minestudio.small_files import read_yaml

_FILE = Path(__file__).parent / "capabilities.yaml"


@cache
def lacking_capabilities() -> Mapping[str, str]:
    """Return what the embedded engine lacks: name -> a sentence that says what is missing."""
    found = read_yaml(_FILE)
    return {str(name): " ".join(str(sentence).split()) for name, sentence in found.items()}
