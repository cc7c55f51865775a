"""Something to do when a module is imported, whoever imports it and however late."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType


def when_imported(name: str, act: Callable[[ModuleType], None]) -> None:
    """Give a module to `act` as soon as it is loaded, which may be now, or never.

    Args:
        name: The module's.
        act: Is given the loaded module, after those that asked before; once, however often it is
            asked for before that.
    """
    if name in sys.modules:
        act(sys.modules[name])
        return
    for finder in sys.meta_path:
        if isinstance(finder, _WhenImported) and finder.name == name:
            if act not in finder.acts:
                finder.acts.append(act)
            return
    sys.meta_path.insert(0, _WhenImported(name, [act]))


class _WhenImported(MetaPathFinder):
    """Finds a module as Python does, and acts once it is loaded.

    Args:
        name: The module's.
        acts: Are given the loaded module.
    """

    def __init__(self, name: str, acts: list[Callable[[ModuleType], None]]) -> None:
        """Wait for the module."""
        self.name = name
        self.acts = acts

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Give the usual spec with our loader in front; None for every other module."""
        if name != self.name:
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _ActingLoader(spec.loader, self.acts)
        return spec


class _ActingLoader(Loader):
    """Loads a module as another loader does, and acts.

    Args:
        loader: The other.
        acts: Are given the loaded module.
    """

    def __init__(self, loader: Loader, acts: Sequence[Callable[[ModuleType], None]]) -> None:
        """Take the place of the other loader."""
        self._loader = loader
        self._acts = acts

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Leave it to the other loader."""
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Execute it, and act."""
        self._loader.exec_module(module)
        for act in self._acts:
            act(module)
