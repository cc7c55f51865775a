"""What `env_generator` and `policy_generator` build, in this package's terms."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from rllib_minestudio.cli.convert.online_dict import Translation
from rllib_minestudio.cli.convert.stand_ins import SIMULATOR, SIMULATOR_PARAMETERS, StandIn
from rllib_minestudio.cli.convert.values import NotPlainError, yaml_value
from rllib_minestudio.env.callbacks.builder import CALLBACKS

_RANDOM_EPISODES = 5
"""Of the random policy, for the summary: at the real game's speed 20 would take minutes."""
_CAMERA_PARAMETERS = (
    *("camera_binsize", "camera_maxval", "camera_mu", "camera_quantization_scheme"),
)
_SUFFIX = "Callback"
_FOREIGN = "minestudio.simulator.callbacks"
_POLICY_LOADERS = {
    "load_vpt_policy": ("model_path", "weights_path"),
    "VPTPolicy.from_pretrained": ("pretrained_model_name_or_path",),
}


def translate_env(translation: Translation, env: Any) -> None:
    """Translate the simulator that `env_generator` returned."""
    if not isinstance(env, StandIn) or env.name != SIMULATOR or not env.is_minestudios:
        translation.left_out.append(
            f"env_generator() returns {_shown(env)}; only MineStudio's MinecraftSim is translated"
        )
        return
    translation.set("config.env_config.engine", "minecraft")
    translation.set("summary.random_policy_episodes", _RANDOM_EPISODES)
    for name, value in _by_name(env, SIMULATOR_PARAMETERS).items():
        if name not in SIMULATOR_PARAMETERS:
            translation.left_out.append(f"MinecraftSim({name}=...): MineStudio ignores it too")
        elif name == "callbacks":
            if specs := _callbacks(translation, value):
                translation.set("config.env_config.callbacks", specs)
        elif name == "camera_config" and isinstance(value, StandIn):
            settings = _by_name(value, _CAMERA_PARAMETERS)
            translation.set("config.env_config.camera_config", _plain(translation, name, settings))
        elif value is not None:
            translation.set(f"config.env_config.{name}", _plain(translation, name, value))


def translate_policy(translation: Translation, policy: Any) -> None:
    """Translate the policy that `policy_generator` returned: where its weights are."""
    if isinstance(policy, StandIn) and policy.is_minestudios and policy.name in _POLICY_LOADERS:
        parameters = _POLICY_LOADERS[policy.name]
        arguments = _by_name(policy, parameters)
        for name in [name for name in arguments if name not in parameters]:
            translation.left_out.append(f"{policy.name}({name}=...): not translated")
        weights = [arguments[name] for name in parameters if arguments.get(name) is not None]
        if weights:
            # The sizes follow from what the weights say of themselves.
            places = [_plain(translation, policy.name, place) for place in weights]
            translation.set("config.model.weights", places[0] if len(places) == 1 else places)
            translation.set("config.prior", "initial")
            return
    translation.left_out.append(
        f"policy_generator() returns {_shown(policy)}; translated are load_vpt_policy and "
        "VPTPolicy.from_pretrained with weights. Set model.preset or model.weights"
    )


def _callbacks(translation: Translation, callbacks: Any) -> list[Any]:
    """The callbacks that can be translated; the others are named."""
    if not isinstance(callbacks, list | tuple):
        translation.left_out.append(f"callbacks is {_shown(callbacks)}, no list")
        return []
    specs = [_callback(translation, callback) for callback in callbacks]
    return [spec for spec in specs if spec is not None]


def _callback(translation: Translation, callback: Any) -> Any:
    """A callback as the option `callbacks` has it; None if that is not possible."""
    if not isinstance(callback, StandIn) or not callback.is_minestudios:
        translation.left_out.append(
            f"the callback {_shown(callback)} is not MineStudio's: put its class into a module of "
            "its own and name it by import path, {package.module.Class: {argument: value}}"
        )
        return None
    short = callback.name.removesuffix(_SUFFIX)
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
        return {name: _plain(translation, name, arguments[0])}
    if short == "Compose" and "callbacks" in keywords:
        keywords["callbacks"] = _callbacks(translation, keywords["callbacks"])
    return {name: _plain(translation, name, keywords)} if keywords else name


def _by_name(call: StandIn, parameters: Sequence[str]) -> dict[str, Any]:
    return {**dict(zip(parameters, call.arguments, strict=False)), **call.keywords}


def _plain(translation: Translation, name: str, value: Any) -> Any:
    """A value as YAML can hold it; one that it cannot is left out and said so."""
    try:
        return yaml_value(value)
    except NotPlainError as error:
        translation.left_out.append(f"{name}: {error}")
        return None


def _shown(value: Any) -> str:
    return value.name if isinstance(value, StandIn) else f"a {type(value).__name__}"
