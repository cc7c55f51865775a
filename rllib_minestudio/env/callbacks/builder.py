"""Building callbacks from plain data, such as that of YAML files."""

from __future__ import annotations

import contextlib
import inspect
import io
import logging
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from rllib_minestudio.env.callbacks.base import HOOKS, Compose, Info, Obs, Sim, StepResult, declares
from rllib_minestudio.env.callbacks.extra_observations import (
    CursorCallback,
    InventoryCallback,
    MaskActionsCallback,
    PrevActionCallback,
    VoxelsCallback,
)
from rllib_minestudio.env.callbacks.initial_state import (
    CommandsCallback,
    InitInventoryCallback,
    SummonMobsCallback,
)
from rllib_minestudio.env.callbacks.record import RecordCallback, SpeedTestCallback
from rllib_minestudio.env.callbacks.resets import (
    FastResetCallback,
    HardResetCallback,
    JudgeResetCallback,
    SavedGamesCallback,
)
from rllib_minestudio.env.callbacks.rewards import (
    GateRewardsCallback,
    RewardsCallback,
    TechTreeRewardsCallback,
)
from rllib_minestudio.env.callbacks.tasks import (
    TaskCallback,
    TaskFileCallback,
    check_rewarded_tasks,
)
from rllib_minestudio.errors import InvalidOptionsError, did_you_mean
from rllib_minestudio.foundation.options import Problems, is_list

SUFFIX = "Callback"

CALLBACKS: dict[str, type] = {
    callback.__name__.removesuffix(SUFFIX): callback
    for callback in (
        CommandsCallback,
        Compose,
        CursorCallback,
        FastResetCallback,
        GateRewardsCallback,
        HardResetCallback,
        InitInventoryCallback,
        InventoryCallback,
        JudgeResetCallback,
        MaskActionsCallback,
        PrevActionCallback,
        RecordCallback,
        RewardsCallback,
        SavedGamesCallback,
        SpeedTestCallback,
        SummonMobsCallback,
        TaskCallback,
        TaskFileCallback,
        TechTreeRewardsCallback,
        VoxelsCallback,
    )
}
"""Built-in callbacks by short name; `<name>Callback` means the same."""


def is_built_in(callback: Any) -> bool:
    """Return whether a callback is an object of one of `CALLBACKS`."""
    return type(callback) in CALLBACKS.values()


def build_callbacks(specs: Sequence[Any]) -> list[Any]:
    """Build callbacks, in order.

    Args:
        specs: Each is a name (`"FastReset"`, `"FastResetCallback"` or an import path such as
            `"my_package.my_module.MyCallback"`), a mapping of one name to its arguments
            (`{"JudgeReset": {"time_limit": 600}}`; anything but a mapping is taken as the only
            argument: `{"JudgeReset": 600}`), or an object that has callback hooks. `Compose`
            takes such a list as its `callbacks`. MineStudio's own are wrapped in `ForeignCallback`.

    Returns:
        One object per spec.

    Raises:
        InvalidOptionsError: If any name is unknown or any argument wrong; lists all problems.
    """
    return _checked_together(_for_each(specs, _build_one))


def check_callbacks(specs: Sequence[Any]) -> list[Any]:
    """Check specs as for `build_callbacks`, without building users' classes.

    Users' constructors may do anything, so what they refuse is known only when an environment is
    built. Built-in callbacks are built, since their constructors only check and keep arguments.

    Returns:
        For each spec the built-in callback, or the spec of another callback.

    Raises:
        InvalidOptionsError: If any name is unknown or any argument wrong; lists all problems.
    """
    return _checked_together(_for_each(specs, _check_one))


def summon_mobs(specs: Sequence[Any]) -> bool:
    """Return whether any callbacks say that they summon mobs; see `MinecraftCallback`.

    Args:
        specs: As for `build_callbacks`; classes of users are asked, but not built.

    Raises:
        InvalidOptionsError: As `check_callbacks`.
    """
    return any(map(_summons_mobs, check_callbacks(specs)))


def _summons_mobs(callback: Any) -> bool:
    """Whether a built-in callback, or the spec of another, says so."""
    if isinstance(callback, Compose):
        return any(map(_summons_mobs, callback.callbacks))
    constructor = _read(callback)
    if constructor is not None:
        callback = constructor.factory
    kind = callback if isinstance(callback, type) else type(callback)
    # MineStudio's own says nothing.
    return bool(getattr(callback, "summons_mobs", kind.__name__ == SummonMobsCallback.__name__))


def declaring_callbacks(specs: Sequence[Any]) -> list[Any]:
    """Build the callbacks that may declare parts of observations; see `declared_spaces`.

    Args:
        specs: As for `build_callbacks`.

    Returns:
        For each spec the callback, or the spec itself if it declares nothing.

    Raises:
        InvalidOptionsError: As `build_callbacks`.
    """
    return _checked_together(_for_each(specs, _build_declaring))


class _Constructor(NamedTuple):
    """The class that a spec names, under the name that the user gave it, and its arguments."""

    name: str
    factory: Callable[..., Any]
    keywords: Mapping[str, Any]


def _for_each(specs: Sequence[Any], act: Callable[[Any], Any]) -> list[Any]:
    """Return the result of `act` for each spec, or raise all its problems together."""
    problems = Problems()
    results = []
    if not is_list(specs):
        problems.add("callbacks", specs, "must be a list")
        specs = []
    for i, spec in enumerate(specs):
        try:
            results.append(act(spec))
        except InvalidOptionsError as error:
            owner = Problems(f"callbacks[{i}]")
            owner.include(error)
            problems.messages.extend(owner.messages)
    problems.raise_if_any()
    return results


def _build_one(spec: Any) -> Any:
    """Build one callback or raise InvalidOptionsError."""
    constructor = _read(spec)
    return spec if constructor is None else adapt(_call(constructor, _build_one))


def _check_one(spec: Any) -> Any:
    """Return a built-in callback, or the spec of another, or raise InvalidOptionsError."""
    constructor = _read(spec)
    if constructor is None or constructor.factory not in CALLBACKS.values():
        return spec
    return _call(constructor, _check_one)


def _build_declaring(spec: Any) -> Any:
    """Return a callback that is built in or declares something, or the spec of another."""
    constructor = _read(spec)
    if constructor is None:
        return spec
    if constructor.factory not in CALLBACKS.values() and not declares(constructor.factory):
        return spec
    return _call(constructor, _build_declaring)


def _checked_together(callbacks: list[Any]) -> list[Any]:
    """Return callbacks, or raise InvalidOptionsError if they contradict one another."""
    problems = Problems("callbacks")
    check_rewarded_tasks(problems, callbacks)
    problems.raise_if_any()
    return callbacks


def _read(spec: Any) -> _Constructor | None:
    """Return the constructor that a spec names, checked as far as possible without calling it.

    Returns:
        None for a spec that is a callback itself.

    Raises:
        InvalidOptionsError: If there is no such class, or it does not take these arguments.
    """
    if isinstance(spec, str):
        return _named(spec, {})
    if isinstance(spec, Mapping):
        if len(spec) != 1:
            raise InvalidOptionsError(
                "must be one name and its arguments, {Name: {argument: value}}; "
                f"got the keys {list(spec)}. Is the indentation of the arguments right?"
            )
        ((name, arguments),) = spec.items()
        return _named(name, {} if arguments is None else arguments)
    if isinstance(spec, type) or not _has_hooks(spec):
        raise InvalidOptionsError(
            f"must be a name, {{Name: {{argument: value}}}}, or an object with at least one of "
            f"the hooks {', '.join(HOOKS)}; got {spec!r}."
        )
    return None


def _named(name: Any, arguments: Any) -> _Constructor:
    """Find the callback class `name`, and check that it takes these arguments."""
    problems = Problems(str(name))
    factory = _resolve(name)
    keywords = _as_keywords(problems, factory, arguments)
    _check_signature(problems, factory, keywords)
    problems.raise_if_any()
    return _Constructor(name, factory, keywords)


def _call(constructor: _Constructor, act: Callable[[Any], Any]) -> Any:
    """Call a callback class, naming it in every error.

    Args:
        constructor: The class and its arguments.
        act: What to do with each of the callbacks of a `Compose`.
    """
    name, factory, keywords = constructor
    try:
        if factory is Compose and "callbacks" in keywords:
            keywords = {**keywords, "callbacks": _for_each(keywords["callbacks"], act)}
        return factory(**keywords)
    except InvalidOptionsError as error:
        problems = Problems(name)
        problems.include(error)
        raise InvalidOptionsError(problems.messages) from error
    except Exception as error:
        raise InvalidOptionsError(
            f"{name}: its constructor raised {type(error).__name__}: {error}"
        ) from error


def _resolve(name: Any) -> Callable[..., Any]:
    """Find a callback class by short name, full name or import path."""
    if not isinstance(name, str):
        raise InvalidOptionsError(f"the name of a callback must be a string; got {name!r}.")
    short = name.removesuffix(SUFFIX)
    if short in CALLBACKS:
        return CALLBACKS[short]
    module_name, _, attribute = name.rpartition(".")
    if not module_name:
        hint = did_you_mean(short, CALLBACKS)
        raise InvalidOptionsError(
            f"unknown callback {name!r}.{hint} Built in: {', '.join(CALLBACKS)}; "
            "name others by import path (package.module.Class)."
        )
    try:
        module = import_module(module_name)
    except Exception as error:
        raise InvalidOptionsError(
            f"cannot import {module_name!r} for the callback {name!r}: {error}"
        ) from error
    factory = getattr(module, attribute, None)
    if not isinstance(factory, type):
        hint = did_you_mean(attribute, vars(module))
        raise InvalidOptionsError(f"{module_name!r} has no class {attribute!r}.{hint}")
    # Checked before it is called: `os.system` takes arguments, too.
    if not _has_hooks(factory):
        raise InvalidOptionsError(f"{name}: has none of the hooks {', '.join(HOOKS)}.")
    return factory


def _as_keywords(problems: Problems, factory: Callable[..., Any], arguments: Any) -> dict[str, Any]:
    """Return the arguments by name; a lone value belongs to the first parameter."""
    if isinstance(arguments, Mapping):
        return {str(name): value for name, value in arguments.items()}
    for parameter in inspect.signature(factory).parameters.values():
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
            return {parameter.name: arguments}
    problems.messages.append(f"{problems.owner}: its arguments must be given by name.")
    return {}


def _check_signature(
    problems: Problems, factory: Callable[..., Any], keywords: Mapping[str, Any]
) -> None:
    """Note unexpected and missing arguments."""
    parameters = inspect.signature(factory).parameters
    kinds = {parameter.kind for parameter in parameters.values()}
    if inspect.Parameter.VAR_KEYWORD not in kinds:
        problems.known("argument", keywords, parameters)
    for name, parameter in parameters.items():
        is_variadic = parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
        if parameter.default is parameter.empty and not is_variadic and name not in keywords:
            problems.messages.append(f"{problems.owner}: argument {name!r} is missing.")


def _has_hooks(callback: Any) -> bool:
    return any(callable(getattr(callback, hook, None)) for hook in HOOKS)


# ------------------------------------------- MineStudio's own callbacks, without their side effects

_PACKAGE = "minestudio."
_TIME_LIMIT = "JudgeResetCallback"
_RESET_HOOKS = ("before_reset", "after_reset")

_logger = logging.getLogger(__name__)


def adapt(callback: Any) -> Any:
    """Wrap a callback that comes with MineStudio's package; return any other as it is."""
    return ForeignCallback(callback) if _is_foreign(type(callback)) else callback


class ForeignCallback:
    """One of MineStudio's own callbacks, adapted to this simulator.

    Its resets draw from the simulator's generator instead of Python's and NumPy's global ones, so
    that seeds reproduce episodes, and what they print goes to the log. The time limit of
    MineStudio's JudgeReset, which it reports as termination, becomes a truncation.

    Attributes:
        callback: The callback itself.
    """

    def __init__(self, callback: Any) -> None:
        self.callback = callback
        for name in HOOKS:
            hook = getattr(callback, name)
            if not _defines(type(callback), name):
                continue
            if name in _RESET_HOOKS:
                hook = _contained(hook)
            elif name == "after_step" and type(callback).__name__ == _TIME_LIMIT:
                hook = _truncating(hook)
            setattr(self, name, hook)

    def __repr__(self) -> str:
        return f"ForeignCallback({self.callback!r})"


def _is_foreign(kind: type) -> bool:
    return kind.__module__.startswith(_PACKAGE)


def _defines(kind: type, hook: str) -> bool:
    """Return whether a class, or a parent other than MineStudio's base class, defines a hook."""
    return any(hook in vars(each) for each in kind.__mro__ if each.__name__ != "MinecraftCallback")


def _contained(hook: Callable[..., Any]) -> Callable[..., Any]:
    """Return a reset hook without side effects on the rest of the process."""

    def contained(sim: Sim, *arguments: Any) -> Any:
        printed = io.StringIO()
        with _seeded(sim.np_random), contextlib.redirect_stdout(printed):
            result = hook(sim, *arguments)
        if text := printed.getvalue().strip():
            _logger.debug("%s", text)
        return result

    return contained


def _truncating(hook: Callable[..., StepResult]) -> Callable[..., StepResult]:
    """Return the hook of a time limit, made to truncate."""

    def truncating(
        sim: Sim, obs: Obs, reward: float, terminated: bool, truncated: bool, info: Info
    ) -> StepResult:
        with contextlib.redirect_stdout(io.StringIO()):
            obs, reward, ended, truncated, info = hook(
                sim, obs, reward, terminated, truncated, info
            )
        return obs, reward, terminated, truncated or (ended and not terminated), info

    return truncating


@contextlib.contextmanager
def _seeded(generator: np.random.Generator) -> Iterator[None]:
    """Seed the global generators, and restore their states afterwards."""
    of_python, of_numpy = random.getstate(), np.random.get_state()
    seed = int(generator.integers(2**32))
    random.seed(seed)
    np.random.seed(seed)
    try:
        yield
    finally:
        random.setstate(of_python)
        np.random.set_state(of_numpy)


# ------------------------------------------- what the callbacks of a task promise about its returns

_BOUNDED = (RewardsCallback, TechTreeRewardsCallback)
_MAY_CHANGE_REWARDS = (Compose, GateRewardsCallback)


def highest_return(specs: Sequence[Any]) -> float | None:
    """Return an upper bound of the undiscounted return, without building users' classes.

    Args:
        specs: The environment's callbacks, as for `build_callbacks`.

    Returns:
        The limit of the last `Rewards` or `TechTreeRewards`; None if there is none, if it pays for
        something without limit, or if a later callback may change the reward.

    Raises:
        InvalidOptionsError: If any name is unknown or any argument wrong; lists all problems.
    """
    bound = None
    for callback in check_callbacks(specs):
        if isinstance(callback, _BOUNDED):
            highest = callback.highest_return
            bound = highest if math.isfinite(highest) else None
        elif type(callback) not in CALLBACKS.values() or isinstance(callback, _MAY_CHANGE_REWARDS):
            bound = None
    return bound
