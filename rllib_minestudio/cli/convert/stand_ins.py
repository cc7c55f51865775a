"""Running a MineStudio config module without MineStudio: its classes only note their arguments.

A config module is Python: `env_generator()` builds a simulator, `policy_generator()` loads
gigabytes of weights. Here the names that it imports from `minestudio`, and from packages that are
not installed, are stand-ins, so that running both costs nothing and shows what they were given.
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
"""Name under which the config module runs: that of the module of its classes."""
_CONFIGS = "minestudio.online.run.config"
"""MineStudio's own configs, which others take their `online_dict` from: run, not replaced."""

SIMULATOR = "MinecraftSim"
SIMULATOR_PARAMETERS = (
    *("action_type", "obs_size", "render_size", "seed", "inventory", "preferred_spawn_biome"),
    *("num_empty_frames", "callbacks", "camera_config"),
)
"""In MineStudio's order; ours have the same names."""
_START = "start_trainer"
_START_PARAMETERS = ("policy_generator", "env_generator", "online_cfg")


class _Noting(type):
    """Makes `Class.method(...)` a noted call too, such as `VPTPolicy.from_pretrained("...")`."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _stand_in(f"{cls.__qualname__}.{name}", cls.__module__)

    def __call__(cls, *arguments: Any, **keywords: Any) -> Any:
        StandIn.used.add(_package(cls))
        if cls.__qualname__ == _START and _package(cls) == MINESTUDIO:
            StandIn.started = by_name(super().__call__(*arguments, **keywords), _START_PARAMETERS)
        if any(base.__module__.startswith(_POLICIES) for base in cls.__mro__):
            # One derived from MineStudio's builds layers as wide as those, which are none here.
            policy: Any = object.__new__(cast("type[StandIn]", cls))
            StandIn.__init__(policy, *arguments, **keywords)
            return policy
        return super().__call__(*arguments, **keywords)


class StandIn(metaclass=_Noting):
    """What a call of a stand-in returns: its name and arguments, and no behaviour.

    Attributes:
        used: Packages of which a class was called or derived from, since the last config module.
        started: What `start_trainer` was called with, by name, if the config module itself calls
            it as a program does.
        arguments: The positional ones.
        keywords: The others, by name.
    """

    used: ClassVar[set[str]] = set()
    started: ClassVar[dict[str, Any]] = {}

    def __init_subclass__(cls) -> None:
        """Note the class that the config derives from."""
        StandIn.used.update(_package(base) for base in cls.__mro__[1:] if base is not StandIn)

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        """Note the arguments; the simulator's by name, as they are its attributes too."""
        if type(self).__qualname__ == SIMULATOR and self.is_minestudios:
            keywords = {**dict(zip(SIMULATOR_PARAMETERS, arguments, strict=False)), **keywords}
            keywords.setdefault("callbacks", [])
            arguments = arguments[len(SIMULATOR_PARAMETERS) :]
        vars(self).update(arguments=arguments, keywords=keywords)

    def __getattr__(self, name: str) -> Any:
        """An argument, as in `sim.callbacks`; any method returns the object itself.

        The latter is what `policy.to(device)` does.
        """
        if name.startswith("__"):
            raise AttributeError(name)
        if name in self.keywords:
            return self.keywords[name]
        return lambda *_, **__: self

    def __setattr__(self, name: str, value: Any) -> None:
        """Note it as an argument, as in `sim.callbacks = [...]`."""
        self.keywords[name] = value

    @property
    def name(self) -> str:
        """What was called: a class's or function's name, a class method with its class."""
        return type(self).__qualname__

    @property
    def is_minestudios(self) -> bool:
        """Whether it is MineStudio's own, not a class of the config derived from one."""
        return _package(type(self)) == MINESTUDIO


def by_name(call: StandIn, parameters: Sequence[str]) -> dict[str, Any]:
    """Return a call's arguments by name.

    Args:
        call: What it returned.
        parameters: The names of positional ones, in order.
    """
    return {**dict(zip(parameters, call.arguments, strict=False)), **call.keywords}


def _package(of: type) -> str:
    return of.__module__.partition(".")[0]


def _stand_in(name: str, module: str) -> type[StandIn]:
    return cast("type[StandIn]", _Noting(name, (StandIn,), {"__module__": module}))


class _StandInModule(ModuleType):
    """A module that has whatever name one asks it for."""

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
    """Finds stand-ins for MineStudio's modules, and for what the config imports in vain."""

    def __init__(self, folder: Path, star: list[str]) -> None:
        """Note where the config is.

        Args:
            folder: Its folder.
            star: What it gets from `from ... import *`.
        """
        self.missing: set[str] = set()
        self.folder = folder
        self._star = star
        self._searching = False

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        package = fullname.partition(".")[0]
        if package != MINESTUDIO and package not in self.missing:
            # Libraries try optional imports of their own, which have to fail.
            if self._searching or not self._asked_by_the_config() or self._is_installed(package):
                return None
            self.missing.add(package)
        if fullname.startswith(f"{_CONFIGS}.") and (real := self._real_config(fullname)):
            return real
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def _real_config(self, fullname: str) -> importlib.machinery.ModuleSpec | None:
        """One of MineStudio's own configs, if MineStudio is installed; it need not be imported."""
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
        """Whether the import under way stands in the config module, or a module beside it."""
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
        """Whether a module's file lies in the config's folder."""
        return isinstance(file, str) and Path(file).resolve().parent == self.folder

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return _StandInModule(spec.name, self._star)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing to execute."""


def _unbound_names(config: Path) -> list[str]:
    """What a config uses and never binds: what it gets from `from ... import *`."""
    try:
        tree = ast.parse(config.read_bytes())
    except (SyntaxError, ValueError):
        return []  # running it will say so
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
    """Let imports find stand-ins, and modules beside the config; afterwards all is as it was."""
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
    """What a training of MineStudio's is made of.

    Attributes:
        online_dict: Its options, or None.
        env: What `env_generator()` returned, or None.
        policy: What `policy_generator()` returned, or None.
        missing: Packages that are not installed although it uses something of them.
        problems: Why `env` or `policy` is None although there is a generator.
    """

    def __init__(
        self,
        policy_generator: Callable[[], Any],
        env_generator: Callable[[], Any],
        online_cfg: Any,
        folder: Path,
    ) -> None:
        """Run the two generators, whose own imports of MineStudio find stand-ins.

        Args:
            policy_generator: Returns the policy.
            env_generator: Returns the simulator.
            online_cfg: The options.
            folder: Where the generators' modules beside them are.
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
    """What a MineStudio config module says, or a program that starts a training itself."""

    def __init__(self, path: Path) -> None:
        """Run the module, and its two generators.

        Raises:
            ExperimentFileError: If it does not exist or raises.
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
            # What a program starts counts: it may have changed a copy of its online_dict.
            self._generate({**names, "online_cfg": names.get("online_dict"), **StandIn.started})
        self.missing = sorted(finder.missing & StandIn.used)


# -------------------------------------------------- values of a config module as YAML can hold them


class NotPlainError(ValueError):
    """A value that YAML cannot hold; the message shows it."""


def yaml_value(value: Any) -> Any:
    """Return a value in lists, mappings, texts and numbers, enums as what they stand for.

    Raises:
        NotPlainError: It holds something else.
    """
    return plain(value, otherwise=_stands_for, key=yaml_value)


def _stands_for(value: Any) -> Any:
    if isinstance(value, Enum):
        return yaml_value(value.value)
    if isinstance(value, PurePath):
        return str(value)
    raise NotPlainError(f"{value!r} cannot be written as YAML")
