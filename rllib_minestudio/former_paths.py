"""Modules that have moved: their old import paths, which pickles and users' code may name.

RLlib's checkpoints pickle classes by the module they live in, so that what an earlier version
saved is read only if the old path still leads somewhere. CHANGELOG.md shows the same table.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

PACKAGE = "rllib_minestudio"

MOVED: dict[str, str] = {
    "algorithms.env_pool.options": "algorithms.options.env_pool",
}
"""Old path to new path, both below the package, dotted."""


class _FormerPath(MetaPathFinder, Loader):
    """Finds a moved module under its old path, and gives the one module that there is."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package, _, old = fullname.partition(".")
        return ModuleSpec(fullname, self) if package == PACKAGE and old in MOVED else None

    def exec_module(self, module: ModuleType) -> None:
        old = module.__name__
        new = f"{PACKAGE}.{MOVED[old.removeprefix(f'{PACKAGE}.')]}"
        warnings.warn(f"{old} is now {new}", DeprecationWarning, stacklevel=2)
        sys.modules[old] = import_module(new)


def install() -> None:
    """Let Python find moved modules under their old paths, before it looks for files."""
    if not any(isinstance(finder, _FormerPath) for finder in sys.meta_path):
        sys.meta_path.insert(0, _FormerPath())
