"""Makes algorithms and environment known by name, and evaluation to the algorithms.

`import rllib_minestudio` is enough for `tune.Tuner("MineStudioPPO")`, before or after Ray is
imported. Tune's registry is filled as soon as it exists; what it is given unpickles to the class,
so torch is imported when a name is first used. Ray empties the registry with each session, which
is why it is filled again by every `ray.init`.

Likewise `gymnasium.make("MineStudio-v0")`, before or after gymnasium is imported.

Evaluation, too, is imported when it is first asked for (`algorithms/evaluation_hook.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

from rllib_minestudio.algorithms import evaluation_hook
from rllib_minestudio.import_hooks import when_imported

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
