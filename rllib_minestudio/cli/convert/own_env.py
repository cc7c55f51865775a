"""An environment of this package that `env_generator` built, as the options that it was built of.

Its callbacks may be objects. Those keep their constructor's arguments in attributes of the same
names, which is how they become the text of a file again; where one does not, that is said.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterable, Mapping
from typing import Any

from rllib_minestudio.cli.convert.online_dict import Translation
from rllib_minestudio.env import MineStudioEnv
from rllib_minestudio.env.callbacks.builder import CALLBACKS
from rllib_minestudio.env.env_options import EnvOptions

_DECIDED_BY_RLLIB = ("worker_index", "vector_index")


def translate_own_env(translation: Translation, env: MineStudioEnv) -> None:
    """Translate an environment's options where they are no defaults, and close it."""
    defaults = EnvOptions()
    translation.set("config.env_config.engine", env.options.engine)
    for option in dataclasses.fields(EnvOptions):
        name, value = option.name, getattr(env.options, option.name)
        if name in _DECIDED_BY_RLLIB or value == getattr(defaults, name):
            continue
        if name == "callbacks":
            value = _specs(translation, value)
        elif dataclasses.is_dataclass(value) and not isinstance(value, type):
            value = dataclasses.asdict(value)
        translation.set(f"config.env_config.{name}", translation.plain(name, value))
    env.close()


def _specs(translation: Translation, callbacks: Iterable[Any]) -> list[Any]:
    """The callbacks that can be written down; the others are named."""
    specs = [_spec(translation, callback) for callback in callbacks]
    return [spec for spec in specs if spec is not None]


def _spec(translation: Translation, callback: Any) -> Any:
    """A callback as the option `callbacks` has it; None if it cannot be written down."""
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
    """Whether an argument need not be written; arrays do not say whether they are equal."""
    plain = str | int | float | bool | list | tuple | dict | None
    return isinstance(value, plain) and value == parameter.default
