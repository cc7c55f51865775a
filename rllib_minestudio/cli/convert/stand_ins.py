"""Running a MineStudio config module without MineStudio: its classes only note their arguments.

A config module is Python: `env_generator()` builds a simulator, `policy_generator()` loads
gigabytes of weights. Here the names that it imports from `minestudio`, and from packages that are
not installed, are stand-ins, so that running both costs nothing and shows what they were given.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import runpy
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, cast

from rllib_minestudio.errors import ExperimentFileError

MINESTUDIO = "minestudio"
_RUN_NAME = "__rllib_convert__"


class _Noting(type):
    """Makes `Class.method(...)` a noted call too, such as `VPTPolicy.from_pretrained("...")`."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _stand_in(f"{cls.__qualname__}.{name}", cls.__module__)

    def __call__(cls, *arguments: Any, **keywords: Any) -> Any:
        StandIn.used.add(_package(cls))
        return super().__call__(*arguments, **keywords)


class StandIn(metaclass=_Noting):
    """What a call of a stand-in returns: its name and arguments, and no behaviour.

    Attributes:
        used: Packages of which a class was called or derived from, since the last config module.
        arguments: The positional ones.
        keywords: The others, by name.
    """

    used: ClassVar[set[str]] = set()

    def __init_subclass__(cls) -> None:
        """Note the class that the config derives from."""
        StandIn.used.update(_package(base) for base in cls.__mro__[1:] if base is not StandIn)

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        """Note the arguments."""
        self.arguments = arguments
        self.keywords = keywords

    def __getattr__(self, name: str) -> Any:
        """Any method returns the object itself, as `policy.to(device)` does."""
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_, **__: self

    @property
    def name(self) -> str:
        """What was called: a class's or function's name, a class method with its class."""
        return type(self).__qualname__

    @property
    def is_minestudios(self) -> bool:
        """Whether it is MineStudio's own, not a class of the config derived from one."""
        return _package(type(self)) == MINESTUDIO


def _package(of: type) -> str:
    return of.__module__.partition(".")[0]


def _stand_in(name: str, module: str) -> type[StandIn]:
    return cast("type[StandIn]", _Noting(name, (StandIn,), {"__module__": module}))


class _StandInModule(ModuleType):
    """A module that has whatever name one asks it for."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__ = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = _stand_in(name, self.__name__)
        setattr(self, name, value)
        return value


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds stand-ins for MineStudio's modules, and for what the config imports in vain."""

    def __init__(self) -> None:
        self.missing: set[str] = set()
        self._searching = False

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        package = fullname.partition(".")[0]
        if package != MINESTUDIO and package not in self.missing:
            # Libraries try optional imports of their own, which have to fail.
            if self._searching or not _asked_by_the_config() or self._is_installed(package):
                return None
            self.missing.add(package)
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def _is_installed(self, package: str) -> bool:
        self._searching = True
        try:
            return importlib.util.find_spec(package) is not None
        except (ImportError, ValueError):
            return False
        finally:
            self._searching = False

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return _StandInModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing to execute."""


def _asked_by_the_config() -> bool:
    """Whether the import under way stands in the config module itself."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__") != _RUN_NAME:
        name = str(frame.f_globals.get("__name__"))
        if name != __name__ and not name.startswith("importlib"):
            return False
        frame = frame.f_back  # type: ignore[assignment]
    return frame is not None


@contextmanager
def _installed(finder: _Finder) -> Iterator[None]:
    """Let imports find stand-ins first; afterwards everything is as it was."""
    before = dict(sys.modules)
    StandIn.used.clear()
    for name in [name for name in sys.modules if name.partition(".")[0] == MINESTUDIO]:
        del sys.modules[name]
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name, module in list(sys.modules.items()):
            if isinstance(module, _StandInModule):
                del sys.modules[name]
        sys.modules.update(before)


class ConfigModule:
    """What a MineStudio config module says.

    Attributes:
        online_dict: Its options, or None.
        env: What `env_generator()` returned, or None.
        policy: What `policy_generator()` returned, or None.
        missing: Packages that are not installed although it uses something of them.
        problems: Why `env` or `policy` is None although there is a generator.
    """

    def __init__(self, path: Path) -> None:
        """Run the module, and its two generators.

        Raises:
            ExperimentFileError: If it does not exist or raises.
        """
        if not path.is_file():
            raise ExperimentFileError(f"There is no file {str(path)!r}.")
        finder = _Finder()
        self.problems: list[str] = []
        with _installed(finder):
            try:
                names = runpy.run_path(str(path), run_name=_RUN_NAME)
            except Exception as error:
                raise ExperimentFileError(
                    f"{path}: running it raised {type(error).__name__}: {error}"
                ) from error
            self.env = self._generated(names, "env_generator")
            self.policy = self._generated(names, "policy_generator")
        self.online_dict = names.get("online_dict")
        self.missing = sorted(finder.missing & StandIn.used)

    def _generated(self, names: dict[str, Any], generator: str) -> Any:
        if generator not in names:
            self.problems.append(f"there is no {generator}()")
            return None
        try:
            return names[generator]()
        except Exception as error:
            self.problems.append(f"{generator}() raised {type(error).__name__}: {error}")
            return None
