"""Compatibility of the unmodified MineStudio 1.1.6, which uses a name of NumPy 1, with NumPy 2.

Python runs a module of this name when it starts, from the first folder of PYTHONPATH that has one.
It does not import NumPy itself, but waits until the program does.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import module_from_spec
from types import ModuleType


class _NumPyFinder:
    """Finder that imports NumPy as usual, and then adds the missing name."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path, target) if name == "numpy" else None
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            if not hasattr(module, "unicode_"):
                module.unicode_ = module.str_

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def _run_the_next() -> None:
    """Run the `sitecustomize` that this module hides, if there is one."""
    here = os.path.dirname(os.path.abspath(__file__))
    folders = [folder for folder in sys.path if os.path.abspath(folder) != here]
    spec = PathFinder.find_spec("sitecustomize", folders)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(module_from_spec(spec))


sys.meta_path.insert(0, _NumPyFinder)
_run_the_next()
