"""What `import rllib_minestudio` sets up: names in Ray and gymnasium, and quicker imports.

`import rllib_minestudio` is enough for `tune.Tuner("MineStudioPPO")`, before or after Ray is
imported. Tune's registry is filled as soon as it exists; what it is given unpickles to the class,
so torch is imported when a name is first used. Ray empties the registry with each session, which
is why it is filled again by every `ray.init`.

Likewise `gymnasium.make("MineStudio-v0")`, before or after gymnasium is imported.

Evaluation, too, is imported when it is first asked for (`algorithms/evaluation_hook.py`).
"""

from __future__ import annotations

import gc
import inspect
import sys
from collections.abc import Callable, Sequence
from functools import wraps
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import PackageNotFoundError, requires, version
from types import ModuleType, SimpleNamespace
from typing import Any

from rllib_minestudio.algorithms import evaluation_hook
from rllib_minestudio.errors import DependencyError

ALGORITHMS = {
    "MineStudioPPO": "rllib_minestudio.algorithms.ppo",
    "MineStudioBC": "rllib_minestudio.algorithms.bc",
}
"""Name, of the class as well -> module."""

ENVIRONMENT = "MineStudio-v0"
"""The environment's name in gymnasium's registry."""

TIME_LIMIT = 12_000
"""Steps, ten minutes of game time, after which `gymnasium.make` truncates an episode unless it is
told otherwise: without a task in `callbacks` nothing but death ends one."""


def register_names() -> None:
    """Register the names now, or when the registries are imported."""
    for name, fill in _REGISTRIES.items():
        when_imported(name, fill)


def register_evaluation() -> None:
    """Let configs evaluate; what that takes is imported when the first of them asks for it."""
    evaluation_hook.register(_install_evaluation)


def _install_evaluation(config: Any) -> None:
    from rllib_minestudio.evaluation.training import install

    install(config)


class _Algorithm:
    """Stands for a class in a pickle: it is unpickled as the class itself."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return _load, (self._name,)


def _load(name: str) -> type:
    algorithm: type = getattr(import_module(ALGORITHMS[name]), name)
    return algorithm


def _add_algorithms(registry: ModuleType) -> None:
    import ray

    def register() -> None:
        for name in ALGORITHMS:
            registry._global_registry.register(registry.TRAINABLE_CLASS, name, _Algorithm(name))

    register()
    ray._private.worker._post_init_hooks.append(register)


def _add_environment(registration: ModuleType) -> None:
    if ENVIRONMENT not in registration.registry:
        entry_point = "rllib_minestudio.env.minestudio_env:MineStudioEnv"
        registration.register(ENVIRONMENT, entry_point, max_episode_steps=TIME_LIMIT)


_REGISTRIES: dict[str, Callable[[ModuleType], None]] = {
    "ray.tune.registry": _add_algorithms,
    "gymnasium.envs.registration": _add_environment,
}
"""Module with a registry -> what adds our names to it."""


# ------------------- something to do when a module is imported, whoever imports it and however late


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


# ----------------------- what makes a process of ours ready sooner, and an env runner 70 MB smaller
# **Garbage collection.** Importing Ray and PyTorch makes half a million objects, among which
# Python looks for cycles again and again, after every 700 new ones. Here it waits for more, which
# saves half a second of five on one core.
#
# **Seeds.** Where PyTorch has no CUDA, RLlib seeds a process with
# `torch.use_deterministic_algorithms`. That imports PyTorch's compiler, which takes two seconds
# and 72 MB, only to set its option `deterministic`. Here the option is set when something else
# imports the compiler, which nothing does in an env runner.
#
# **Connectors.** To learn the arguments that it was built with, each connector of RLlib's asks for
# all of its callers, for which Python reads their sources and searches thousands of modules: most
# of the time that building an env runner takes. Here it gets the one caller that it looks at.
#
# Importing this package is what does all three.

COLLECT_AFTER = 10_000
"""New objects after which Python looks for cycles among them."""
_COMPILER = "torch._inductor.config"


def quicken_imports() -> None:
    """Make imports, seeds and connectors quick, from now on."""
    collect_less_often()
    when_imported("ray.rllib.connectors.connector_v2", _find_callers_quickly)
    when_imported("ray.rllib.utils.debug.deterministic", _seed_quickly)


def collect_less_often() -> None:
    """Raise the threshold of Python's garbage collection, unless it is higher or 0 (never)."""
    first, *others = gc.get_threshold()
    if 0 < first < COLLECT_AFTER:
        gc.set_threshold(COLLECT_AFTER, *others)


def _find_callers_quickly(connector_v2: Any) -> None:
    """Let a connector's constructor find who called it without looking at all callers."""
    connector_v2.inspect = _Inspect()


class _Inspect:
    """In place of the module `inspect`."""

    def __getattr__(self, name: str) -> Any:
        return getattr(inspect, name)

    def stack(self) -> list[SimpleNamespace]:
        """The two innermost callers, of which only the frames are known."""
        asking, caller = sys._getframe(1), sys._getframe(2)
        return [SimpleNamespace(frame=asking), SimpleNamespace(frame=caller)]


def _seed_quickly(deterministic: Any) -> None:
    """Let RLlib seed PyTorch without its compiler."""
    seed_torch = deterministic.set_torch_seed

    @wraps(seed_torch)
    def set_torch_seed(seed: int | None = None) -> None:
        import torch

        if _COMPILER in sys.modules:
            seed_torch(seed)
            return
        usual = torch.use_deterministic_algorithms
        torch.use_deterministic_algorithms = _use_deterministic_algorithms
        try:
            seed_torch(seed)
        finally:
            torch.use_deterministic_algorithms = usual

    deterministic.set_torch_seed = set_torch_seed
    when_imported(_COMPILER, _set_compilers_option)


def _use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """As PyTorch's function of that name, but for the compiler's option."""
    import torch

    strictness = "warn" if warn_only else "error"
    torch.set_deterministic_debug_mode(strictness if mode else "default")


def _set_compilers_option(config: Any) -> None:
    """Set what PyTorch's own function would have set."""
    import torch

    if torch.are_deterministic_algorithms_enabled():
        config.deterministic = True


# ---------------------------------------------------- which versions of Ray this package works with
# It uses much that Ray keeps to itself.


def check_ray_version() -> None:
    """Check the version as soon as RLlib is imported, before anything of it is used."""
    when_imported("ray.rllib", _check)


def _check(_: ModuleType) -> None:
    """Look at the version of Ray that is installed.

    Raises:
        DependencyError: It is another than this package was written for.
    """
    from packaging.requirements import Requirement

    try:
        required, found = requires("rllib_minestudio") or (), version("ray")
    except PackageNotFoundError:  # run from its sources
        return
    for requirement in map(Requirement, required):
        if requirement.name == "ray" and not requirement.specifier.contains(found, True):
            raise DependencyError(
                f"Ray {found} is installed, and this version of rllib_minestudio works with "
                f"{requirement.specifier} only: pip install 'ray[rllib]{requirement.specifier}'"
            )
