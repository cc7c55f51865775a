"""What `import rllib_minestudio` sets up: names in Ray and gymnasium, and faster imports.

After it, `tune.Tuner("MineStudioPPO")`, `PPOConfig().environment("MineStudio")` and
`gymnasium.make("MineStudio-v0")` work, whether Ray and gymnasium were imported before or are
imported later: their registries are filled as soon as they exist. Tune's registry gets objects that
unpickle to the classes, so that torch is imported only when a name is used. Ray clears that
registry in each session, so every `ray.init` fills it again.

Evaluation and the reading of experiment files, too, are imported only when a config asks for them
(`algorithms/hooks.py`).
"""

from __future__ import annotations

import gc
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import PackageNotFoundError, requires, version
from types import ModuleType, SimpleNamespace
from typing import Any

from rllib_minestudio.algorithms import hooks
from rllib_minestudio.errors import DependencyError

ALGORITHMS = {
    "MineStudioPPO": "rllib_minestudio.algorithms.ppo",
    "MineStudioBC": "rllib_minestudio.algorithms.bc",
}
"""Name of an algorithm and of its class -> module."""

ENVIRONMENT = "MineStudio-v0"
"""The environment's name in gymnasium's registry."""

FLAT_ENVIRONMENT = "MineStudio"
"""Name in Tune's registry of the environment with flat spaces, for RLlib's own algorithms. In the
configs of this package's algorithms, the name stands for `MineStudioEnv`."""

TIME_LIMIT = 12_000
"""Environment steps (ten minutes of game time) after which environments from `gymnasium.make`
truncate an episode by default: without a task in `callbacks`, only death ends one."""


def register_names() -> None:
    """Register the names now, or as soon as the registries are imported."""
    for name, fill in _REGISTRIES.items():
        when_imported(name, fill)


def register_hooks() -> None:
    """Enable evaluation and examples in configs; their code is imported when one asks for it."""
    hooks.register(_install_evaluation, _config_from_example)


def _install_evaluation(config: Any) -> None:
    from rllib_minestudio.evaluation.during_training import install

    install(config)


def _config_from_example(name: str, config_class: type) -> Any:
    from rllib_minestudio.experiments.plan import config_of_example

    return config_of_example(name, config_class)


class _Algorithm:
    """A placeholder for an algorithm class, which unpickles as the class itself."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return _load, (self._name,)


def _load(name: str) -> type:
    algorithm: type = getattr(import_module(ALGORITHMS[name]), name)
    return algorithm


def _make_flat_env(config: Mapping[str, Any]) -> Any:
    from rllib_minestudio.env.flat_spaces import make_flat_env

    return make_flat_env(config)


def _add_to_tune(registry: ModuleType) -> None:
    import ray

    def register() -> None:
        for name in ALGORITHMS:
            registry._global_registry.register(registry.TRAINABLE_CLASS, name, _Algorithm(name))
        registry.register_env(FLAT_ENVIRONMENT, _make_flat_env)

    register()
    ray._private.worker._post_init_hooks.append(register)


def _add_environment(registration: ModuleType) -> None:
    if ENVIRONMENT not in registration.registry:
        entry_point = "rllib_minestudio.env.minestudio_env:MineStudioEnv"
        registration.register(ENVIRONMENT, entry_point, max_episode_steps=TIME_LIMIT)


_REGISTRIES: dict[str, Callable[[ModuleType], None]] = {
    "ray.tune.registry": _add_to_tune,
    "gymnasium.envs.registration": _add_environment,
}
"""Module with a registry -> function that adds our names to it."""


# ------------------------------------------------------------------ hooks on the import of a module


def when_imported(name: str, act: Callable[[ModuleType], None]) -> None:
    """Call a function with a module once it is loaded: now if it is loaded already, or later.

    Args:
        name: Name of the module.
        act: Called with the loaded module, after the functions registered before it; once, even if
            it is registered several times before the module is loaded.
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
    """A finder that finds one module as Python does, and calls functions once it is loaded.

    Args:
        name: Name of the module.
        acts: Called with the loaded module.
    """

    def __init__(self, name: str, acts: list[Callable[[ModuleType], None]]) -> None:
        self.name = name
        self.acts = acts

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the usual spec with our loader around its own; None for any other module."""
        if name != self.name:
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _ActingLoader(spec.loader, self.acts)
        return spec


class _ActingLoader(Loader):
    """A loader that wraps another one, and calls functions once the module is loaded.

    Args:
        loader: The wrapped loader.
        acts: Called with the loaded module.
    """

    def __init__(self, loader: Loader, acts: Sequence[Callable[[ModuleType], None]]) -> None:
        self._loader = loader
        self._acts = acts

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        for act in self._acts:
            act(module)


# ------------------------- faster start of every process, and 70 MB less memory for each env runner
# Importing this package does three things.
#
# **Garbage collection.** Importing Ray and PyTorch creates half a million objects, and Python runs
# the garbage collector after every 700 new ones. A higher threshold saves half a second of five on
# one core.
#
# **Seeds.** Where PyTorch has no CUDA, RLlib seeds a process with
# `torch.use_deterministic_algorithms`. That imports PyTorch's compiler, which takes two seconds
# and 72 MB, only to set its option `deterministic`. Here the option is set if and when something
# else imports the compiler, which never happens in an env runner.
#
# **Connectors.** To find the arguments it was built with, each RLlib connector calls
# `inspect.stack`, which reads the source of every caller and searches thousands of modules. This
# is most of the time that building an env runner takes. Here it gets only the frames it uses.

COLLECT_AFTER = 10_000
"""Number of new objects that triggers Python's garbage collector."""
_COMPILER = "torch._inductor.config"


def quicken_imports() -> None:
    """Speed up imports, seeding and connectors from now on."""
    collect_less_often()
    when_imported("ray.rllib.connectors.connector_v2", _find_callers_quickly)
    when_imported("ray.rllib.utils.debug.deterministic", _seed_quickly)


def collect_less_often() -> None:
    """Raise the threshold of Python's garbage collector, unless it is higher or 0 (disabled)."""
    first, *others = gc.get_threshold()
    if 0 < first < COLLECT_AFTER:
        gc.set_threshold(COLLECT_AFTER, *others)


def _find_callers_quickly(connector_v2: Any) -> None:
    """Let a connector's constructor find its caller without inspecting the whole stack."""
    connector_v2.inspect = _Inspect()


class _Inspect:
    """A replacement for the module `inspect`."""

    def __getattr__(self, name: str) -> Any:
        return getattr(inspect, name)

    def stack(self) -> list[SimpleNamespace]:
        """Return the two innermost callers, with their frames only."""
        asking, caller = sys._getframe(1), sys._getframe(2)
        return [SimpleNamespace(frame=asking), SimpleNamespace(frame=caller)]


def _seed_quickly(deterministic: Any) -> None:
    """Let RLlib seed PyTorch without importing PyTorch's compiler."""
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
    """Do what PyTorch's function of that name does, except for the compiler's option."""
    import torch

    strictness = "warn" if warn_only else "error"
    torch.set_deterministic_debug_mode(strictness if mode else "default")


def _set_compilers_option(config: Any) -> None:
    """Set the compiler's option, as PyTorch's own function would have done."""
    import torch

    if torch.are_deterministic_algorithms_enabled():
        config.deterministic = True


# --------------------------------------------------------------------------- check of Ray's version
# This package uses many of Ray's internals.


def check_ray_version() -> None:
    """Check Ray's version as soon as RLlib is imported, before any of it is used."""
    when_imported("ray.rllib", _check)


def _check(_: ModuleType) -> None:
    """Check the installed version of Ray.

    Raises:
        DependencyError: This package does not work with it.
    """
    from packaging.requirements import Requirement

    try:
        required, found = requires("rllib_minestudio") or (), version("ray")
    except PackageNotFoundError:  # run from the sources
        return
    for requirement in map(Requirement, required):
        if requirement.name == "ray" and not requirement.specifier.contains(found, True):
            raise DependencyError(
                f"Ray {found} is installed, and this version of rllib_minestudio works with "
                f"{requirement.specifier} only: pip install 'ray[rllib]{requirement.specifier}'"
            )
