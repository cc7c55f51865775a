"""Running a MineStudio config module without MineStudio, with stand-ins that record arguments.

A config module is Python: `env_generator()` builds a simulator, and `policy_generator()` loads
gigabytes of weights. Here the names that it imports from `minestudio`, and from packages that are
not installed, are stand-ins, so that running both functions is cheap and reveals the arguments.
"""

from __future__ import annotations

import ast
import builtins
import importlib.abc
import importlib.machinery
import importlib.util
import runpy
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum
from pathlib import Path, PurePath
from types import ModuleType
from typing import Any, ClassVar, cast

from rllib_minestudio.errors import ExperimentFileError
from rllib_minestudio.foundation.values import plain

MINESTUDIO = "minestudio"
_POLICIES = "minestudio.models"
CONFIG_MODULE = "__rllib_convert__"
"""Name under which the config module runs, which its classes have as `__module__`."""
_CONFIGS = "minestudio.online.run.config"
"""MineStudio's own configs, from which others import `online_dict`: they are run, not replaced."""

SIMULATOR = "MinecraftSim"
SIMULATOR_PARAMETERS = (
    *("action_type", "obs_size", "render_size", "seed", "inventory", "preferred_spawn_biome"),
    *("num_empty_frames", "callbacks", "camera_config"),
)
"""Parameters in MineStudio's order; ours have the same names."""
_START = "start_trainer"
_START_PARAMETERS = ("policy_generator", "env_generator", "online_cfg")


class _Noting(type):
    """Metaclass that also records calls of class methods, like `VPTPolicy.from_pretrained`."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _stand_in(f"{cls.__qualname__}.{name}", cls.__module__)

    def __call__(cls, *arguments: Any, **keywords: Any) -> Any:
        StandIn.used.add(_package(cls))
        if cls.__qualname__ == _START and _package(cls) == MINESTUDIO:
            StandIn.started = by_name(super().__call__(*arguments, **keywords), _START_PARAMETERS)
        if any(base.__module__.startswith(_POLICIES) for base in cls.__mro__):
            # The constructor of a derived policy would build layers of sizes that stand-ins lack.
            policy: Any = object.__new__(cast("type[StandIn]", cls))
            StandIn.__init__(policy, *arguments, **keywords)
            return policy
        return super().__call__(*arguments, **keywords)


class StandIn(metaclass=_Noting):
    """The result of calling a stand-in: its name and arguments, without behaviour.

    Attributes:
        used: Packages with classes that the current config has called or derived from.
        started: Arguments of `start_trainer` by name, if the config is a program that calls it.
        arguments: Positional arguments.
        keywords: Keyword arguments.
    """

    used: ClassVar[set[str]] = set()
    started: ClassVar[dict[str, Any]] = {}

    def __init_subclass__(cls) -> None:
        """Note the packages of the classes that the config derives from."""
        StandIn.used.update(_package(base) for base in cls.__mro__[1:] if base is not StandIn)

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        """Record the arguments; the simulator's by name, because they are also its attributes."""
        if type(self).__qualname__ == SIMULATOR and self.is_minestudios:
            keywords = {**dict(zip(SIMULATOR_PARAMETERS, arguments, strict=False)), **keywords}
            keywords.setdefault("callbacks", [])
            arguments = arguments[len(SIMULATOR_PARAMETERS) :]
        vars(self).update(arguments=arguments, keywords=keywords)

    def __getattr__(self, name: str) -> Any:
        """Return an argument, as in `sim.callbacks`, or else a method that returns the object.

        The latter is for calls such as `policy.to(device)`.
        """
        if name.startswith("__"):
            raise AttributeError(name)
        if name in self.keywords:
            return self.keywords[name]
        return lambda *_, **__: self

    def __setattr__(self, name: str, value: Any) -> None:
        """Record it as an argument, as in `sim.callbacks = [...]`."""
        self.keywords[name] = value

    @property
    def name(self) -> str:
        """The name of the class or function that was called; for class methods with the class."""
        return type(self).__qualname__

    @property
    def is_minestudios(self) -> bool:
        """Whether it is MineStudio's own, not a derived class in the config."""
        return _package(type(self)) == MINESTUDIO


def by_name(call: StandIn, parameters: Sequence[str]) -> dict[str, Any]:
    """Return a call's arguments by name.

    Args:
        call: The stand-in that the call returned.
        parameters: Names of the positional parameters, in order.
    """
    return {**dict(zip(parameters, call.arguments, strict=False)), **call.keywords}


def _package(of: type) -> str:
    return of.__module__.partition(".")[0]


def _stand_in(name: str, module: str) -> type[StandIn]:
    return cast("type[StandIn]", _Noting(name, (StandIn,), {"__module__": module}))


class _StandInModule(ModuleType):
    """A module in which every name exists, as a stand-in."""

    def __init__(self, name: str, star: list[str]) -> None:
        super().__init__(name)
        self.__path__ = []
        self.__all__ = star

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = _stand_in(name, self.__name__)
        setattr(self, name, value)
        return value


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds stand-ins for MineStudio's modules, and for packages that the config lacks.

    Args:
        folder: The config's folder.
        star: Names that the config gets from `from ... import *`.
    """

    def __init__(self, folder: Path, star: list[str]) -> None:
        self.missing: set[str] = set()
        self.folder = folder
        self._star = star
        self._searching = False

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        package = fullname.partition(".")[0]
        if package != MINESTUDIO and package not in self.missing:
            # Optional imports of libraries have to fail.
            if self._searching or not self._asked_by_the_config() or self._is_installed(package):
                return None
            self.missing.add(package)
        if fullname.startswith(f"{_CONFIGS}.") and (real := self._real_config(fullname)):
            return real
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def _real_config(self, fullname: str) -> importlib.machinery.ModuleSpec | None:
        """Find one of MineStudio's own configs, if it is installed, without importing it."""
        for folder in sys.path:
            file = Path(folder or ".").joinpath(*fullname.split(".")).with_suffix(".py")
            if file.is_file():
                return importlib.util.spec_from_file_location(fullname, file)
        return None

    def _is_installed(self, package: str) -> bool:
        self._searching = True
        try:
            return importlib.util.find_spec(package) is not None
        except (ImportError, ValueError):
            return False
        finally:
            self._searching = False

    def _asked_by_the_config(self) -> bool:
        """Return whether the current import is in the config, or a module in its folder."""
        frame = sys._getframe(1)
        while frame is not None:
            name = str(frame.f_globals.get("__name__"))
            if name == CONFIG_MODULE or self.is_beside(frame.f_globals.get("__file__")):
                return True
            if name != __name__ and not name.startswith("importlib"):
                return False
            frame = frame.f_back  # type: ignore[assignment]
        return False

    def is_beside(self, file: Any) -> bool:
        """Return whether a module's file is in the config's folder."""
        return isinstance(file, str) and Path(file).resolve().parent == self.folder

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return _StandInModule(spec.name, self._star)

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: there is no code to execute."""


def _unbound_names(config: Path) -> list[str]:
    """Return names that a config uses but never binds: those from `from ... import *`."""
    try:
        tree = ast.parse(config.read_bytes())
    except (SyntaxError, ValueError):
        return []  # running it will report the error
    used: set[str] = set()
    bound = set(dir(builtins))
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            (used if isinstance(node.ctx, ast.Load) else bound).add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            bound.add(node.name)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.alias):
            bound.add((node.asname or node.name).partition(".")[0])
    return sorted(name for name in used - bound if not name.startswith("__"))


@contextmanager
def _installed(finder: _Finder) -> Iterator[None]:
    """Let imports find stand-ins and modules in the config's folder; then restore the state."""
    before = dict(sys.modules)
    StandIn.used.clear()
    StandIn.started = {}
    for name in [name for name in sys.modules if name.partition(".")[0] == MINESTUDIO]:
        del sys.modules[name]
    sys.meta_path.insert(0, finder)
    sys.path.insert(0, str(finder.folder))
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        sys.path.remove(str(finder.folder))
        for name, module in list(sys.modules.items()):
            is_beside = name not in before and finder.is_beside(getattr(module, "__file__", None))
            if isinstance(module, _StandInModule) or is_beside or name.startswith(f"{_CONFIGS}."):
                del sys.modules[name]
        sys.modules.update(before)


class Config:
    """Options, environment and policy of a MineStudio training run.

    Attributes:
        online_dict: The options, or None.
        env: What `env_generator()` returned, or None.
        policy: What `policy_generator()` returned, or None.
        missing: Packages that the config uses but that are not installed.
        problems: Why `env` or `policy` is None.
    """

    def __init__(
        self,
        policy_generator: Callable[[], Any],
        env_generator: Callable[[], Any],
        online_cfg: Any,
        folder: Path,
    ) -> None:
        """Run the two generators, whose imports of MineStudio find stand-ins.

        Args:
            policy_generator: Returns the policy.
            env_generator: Returns the simulator.
            online_cfg: The options.
            folder: Folder from which the generators may import modules.
        """
        finder = _Finder(folder, [])
        with _installed(finder):
            given = (policy_generator, env_generator, online_cfg)
            self._generate(dict(zip(_START_PARAMETERS, given, strict=True)))
        self.missing = sorted(finder.missing & StandIn.used)

    def _generate(self, names: Mapping[str, Any]) -> None:
        self.problems: list[str] = []
        self.env = self._generated(names, "env_generator")
        self.policy = self._generated(names, "policy_generator")
        self.online_dict = names.get("online_cfg")

    def _generated(self, names: Mapping[str, Any], generator: str) -> Any:
        if generator not in names:
            self.problems.append(f"there is no {generator}()")
            return None
        try:
            generated = names[generator]()
        except (Exception, SystemExit) as error:
            self.problems.append(f"{generator}() raised {type(error).__name__}: {error}")
            return None
        if generated is None:
            self.problems.append(f"{generator}() returns None")
        return generated


class ConfigModule(Config):
    """The config in a MineStudio config module, or in a program that starts training itself."""

    def __init__(self, path: Path) -> None:
        """Run the module and its two generators.

        Raises:
            ExperimentFileError: The module does not exist or raises an error.
        """
        if not path.is_file():
            raise ExperimentFileError(f"There is no file {str(path)!r}.")
        finder = _Finder(path.resolve().parent, _unbound_names(path))
        with _installed(finder):
            try:
                names = runpy.run_path(str(path), run_name=CONFIG_MODULE)
            except (Exception, SystemExit) as error:
                raise ExperimentFileError(
                    f"{path}: running it raised {type(error).__name__}: {error}"
                ) from error
            # Arguments of start_trainer take precedence: they may be a changed copy of online_dict.
            self._generate({**names, "online_cfg": names.get("online_dict"), **StandIn.started})
        self.missing = sorted(finder.missing & StandIn.used)


# ------------------------------------------------------------------ plain data of a config's values


class NotPlainError(ValueError):
    """A value cannot be written as YAML; the message shows it."""


def yaml_value(value: Any) -> Any:
    """Return a value as plain data; enums become their values, and paths strings.

    Raises:
        NotPlainError: It contains anything else.
    """
    return plain(value, otherwise=_stands_for, key=yaml_value)


def _stands_for(value: Any) -> Any:
    if isinstance(value, Enum):
        return yaml_value(value.value)
    if isinstance(value, PurePath):
        return str(value)
    raise NotPlainError(f"{value!r} cannot be written as YAML")
