"""MineStudio's own training configs, found by name: `gate_kl` for .../run/config/gate_kl.py.

Its `run.py` takes such a name, imports the module from the installed package, and reads its text
from `config/` in the current folder. Here both places count, the folder first: who writes a config
of his own writes it there. Nothing is imported or executed to find one.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

_INSTALLED = Path("online", "run", "config")
"""Below MineStudio's package."""

_LOCAL = Path("config")
"""Below the current folder, as `run.py` has it."""


def minestudio_config(name: str) -> Path | None:
    """Return the config module that a bare name means; None if there is none."""
    return _by_name().get(name)


def minestudio_config_names() -> list[str]:
    """Return the names that there are."""
    return sorted(_by_name())


def _by_name() -> dict[str, Path]:
    return {
        file.stem: file
        for folder in (*_installed_folders(), _LOCAL)
        for file in sorted(folder.glob("*.py"))
        if not file.stem.startswith("_")
    }


def _installed_folders() -> list[Path]:
    try:
        spec = importlib.util.find_spec("minestudio")
    except (ImportError, ValueError):
        return []
    places = (spec and spec.submodule_search_locations) or ()
    return [Path(place) / _INSTALLED for place in places]
