"""Translation of the environment that `env_generator` returns, and the file that results."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from rllib_minestudio.cli.convert.online_dict import (
    Translation,
    translate_options,
    translate_policy,
)
from rllib_minestudio.cli.convert.stand_ins import (
    SIMULATOR,
    SIMULATOR_PARAMETERS,
    Config,
    StandIn,
    by_name,
)
from rllib_minestudio.env import MineStudioEnv
from rllib_minestudio.env.callbacks.builder import CALLBACKS, SUFFIX
from rllib_minestudio.env.env_options import MINECRAFT, SET_BY_RLLIB, EnvOptions

_RANDOM_EPISODES = 5
"""Episodes of the random policy for the summary: 20 would take minutes in the real game."""
_CAMERA_PARAMETERS = (
    *("camera_binsize", "camera_maxval", "camera_mu", "camera_quantization_scheme"),
)
_FORMER_PARAMETERS = {
    "timestep_limit": "MineStudio ignores it; an episode lasts as long as JudgeReset says"
}
"""Parameters that MineStudio's documentation still shows -> why they are not needed."""
_HERE = __name__.partition(".")[0]
_FOREIGN = "minestudio.simulator.callbacks"


def translate_env(translation: Translation, env: Any) -> None:
    """Translate the simulator that `env_generator` returned."""
    if type(env).__module__.partition(".")[0] == _HERE and isinstance(env, MineStudioEnv):
        _translate_own_env(translation, env)
        if env.options.engine == MINECRAFT:
            translation.set("summary.random_policy_episodes", _RANDOM_EPISODES)
        return
    if not isinstance(env, StandIn) or env.name != SIMULATOR or not env.is_minestudios:
        translation.left_out.append(
            f"env_generator() returns {_shown(env)}; only MineStudio's MinecraftSim and this "
            "package's are translated"
        )
        return
    translation.set("config.env_config.engine", MINECRAFT)
    translation.set("summary.random_policy_episodes", _RANDOM_EPISODES)
    for name, value in by_name(env, SIMULATOR_PARAMETERS).items():
        if name in _FORMER_PARAMETERS:
            translation.not_needed.append(f"MinecraftSim({name}=...): {_FORMER_PARAMETERS[name]}")
        elif name not in SIMULATOR_PARAMETERS:
            translation.left_out.append(f"MinecraftSim({name}=...): MineStudio ignores it too")
        elif name == "callbacks":
            if specs := _callbacks(translation, value):
                translation.set("config.env_config.callbacks", specs)
        elif name == "camera_config" and isinstance(value, StandIn):
            settings = by_name(value, _CAMERA_PARAMETERS)
            translation.set("config.env_config.camera_config", translation.plain(name, settings))
        elif value is not None:
            translation.set(f"config.env_config.{name}", translation.plain(name, value))


def _callbacks(translation: Translation, callbacks: Any) -> list[Any]:
    """Return the callbacks that can be translated; the others are listed in `left_out`."""
    if not isinstance(callbacks, list | tuple):
        translation.left_out.append(f"callbacks is {_shown(callbacks)}, not a list")
        return []
    specs = [_callback(translation, callback) for callback in callbacks]
    return [spec for spec in specs if spec is not None]


def _callback(translation: Translation, callback: Any) -> Any:
    """Return a callback in the form of the option `callbacks`; None if that is not possible."""
    if not isinstance(callback, StandIn) or not callback.is_minestudios:
        translation.left_out.append(
            f"the callback {_shown(callback)} is not MineStudio's: put its class into a module of "
            "its own and name it by import path, {package.module.Class: {argument: value}}"
        )
        return None
    short = callback.name.removesuffix(SUFFIX)
    name = short if short in CALLBACKS else f"{_FOREIGN}.{callback.name}"
    arguments = list(callback.arguments)
    keywords = dict(callback.keywords)
    if short in CALLBACKS:
        parameters = inspect.signature(CALLBACKS[short]).parameters
        keywords = {**dict(zip(parameters, arguments, strict=False)), **keywords}
    elif arguments and (keywords or len(arguments) > 1 or isinstance(arguments[0], Mapping)):
        translation.left_out.append(f"the callback {callback.name}: name its arguments, {name}")
        return None
    elif arguments:
        return {name: translation.plain(name, arguments[0])}
    if short == "Compose" and "callbacks" in keywords:
        keywords["callbacks"] = _callbacks(translation, keywords["callbacks"])
    return {name: translation.plain(name, keywords)} if keywords else name


def _shown(value: Any) -> str:
    return value.name if isinstance(value, StandIn) else f"a {type(value).__name__}"


# ---------------------------------------------------------------- environments of this package


def _translate_own_env(translation: Translation, env: MineStudioEnv) -> None:
    """Translate the options that differ from their defaults, and close the environment.

    Callbacks may be objects. If these keep their constructor's arguments in attributes of the same
    names, they can be written to a file again; otherwise they are listed in `left_out`.
    """
    defaults = EnvOptions()
    translation.set("config.env_config.engine", env.options.engine)
    for option in dataclasses.fields(EnvOptions):
        name, value = option.name, getattr(env.options, option.name)
        if name in SET_BY_RLLIB or value == getattr(defaults, name):
            continue
        if name == "callbacks":
            value = _specs(translation, value)
        elif dataclasses.is_dataclass(value) and not isinstance(value, type):
            value = dataclasses.asdict(value)
        translation.set(f"config.env_config.{name}", translation.plain(name, value))
    env.close()


def _specs(translation: Translation, callbacks: Iterable[Any]) -> list[Any]:
    """Return the callbacks that can be written to a file; the others are listed in `left_out`."""
    specs = [_spec(translation, callback) for callback in callbacks]
    return [spec for spec in specs if spec is not None]


def _spec(translation: Translation, callback: Any) -> Any:
    """Return a callback in the form of the option `callbacks`; None if that is not possible."""
    if isinstance(callback, str | Mapping):
        return callback
    kind = type(callback)
    short = kind.__name__.removesuffix("Callback")
    name = short if CALLBACKS.get(short) is kind else f"{kind.__module__}.{kind.__qualname__}"
    if kind.__module__ == "__main__" or "<locals>" in name:
        translation.left_out.append(
            f"the callback {kind.__name__} is of a class that no other process can import: put it "
            "into a module of its own"
        )
        return None
    arguments: dict[str, Any] = {}
    for parameter in inspect.signature(kind).parameters.values():
        if parameter.name not in vars(callback):
            translation.left_out.append(
                f"the callback {name} does not keep its argument {parameter.name!r}: give "
                f"callbacks {{{name}: {{{parameter.name}: ...}}}} instead of the object"
            )
            return None
        value = vars(callback)[parameter.name]
        if parameter.kind is parameter.VAR_KEYWORD:
            arguments.update(value)
        elif parameter.name == "callbacks":  # Compose's
            arguments[parameter.name] = _specs(translation, value)
        elif not _is_default(value, parameter):
            arguments[parameter.name] = value
    return {name: arguments} if arguments else name


def _is_default(value: Any, parameter: inspect.Parameter) -> bool:
    """Return whether an argument is the default; types like arrays cannot be compared with `==`."""
    plain = str | int | float | bool | list | tuple | dict | None
    return isinstance(value, plain) and value == parameter.default


# ------------------------------- translation of a whole config, and the text of the experiment file


def translate(module: Config) -> Translation:
    """Translate the options, environment and policy of a config."""
    translation = Translation()
    translation.left_out.extend(module.problems)
    for package in module.missing:
        translation.left_out.append(f"{package} is not installed: what the file takes from it")
    if module.online_dict is None:
        translation.left_out.append("there is no online_dict")
    else:
        translate_options(translation, module.online_dict)
    if module.env is not None:
        translate_env(translation, module.env)
    if module.policy is not None:
        translate_policy(translation, module.policy)
    return translation


def as_yaml(translation: Translation, source: Path) -> str:
    """Return the text of an experiment file, with what it lacks as comments at the top.

    Args:
        translation: The translation.
        source: The Python file that was translated.
    """
    lines = [f"# Translated from {source.name} by rllib_minestudio."]
    for title, sentences in (
        ("Not translated; add it by hand:", translation.left_out),
        ("Not needed, or done differently, here:", translation.not_needed),
    ):
        if sentences:
            lines += ["#", f"# {title}"]
            lines += [f"# - {' '.join(sentence.split())}" for sentence in sentences]
    experiment = _without_empty_sections(translation.experiment)
    body = yaml.safe_dump(
        {experiment_name(source): experiment}, sort_keys=False, width=100, allow_unicode=True
    )
    return "\n".join([*lines, "", body])


def experiment_name(source: Path) -> str:
    """Return the name of the experiment that is translated from a file."""
    return re.sub(r"\W+", "_", source.stem)


def _without_empty_sections(section: dict[str, Any]) -> dict[str, Any]:
    """Remove empty mappings, at any depth."""
    kept = {
        key: _without_empty_sections(value) if isinstance(value, dict) else value
        for key, value in section.items()
    }
    return {key: value for key, value in kept.items() if value != {}}
