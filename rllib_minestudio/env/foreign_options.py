"""What an environment's options ask for beyond data, if somebody else wrote them.

Options in a file from elsewhere may name classes, which are imported and run, and paths, which are
read, written, or searched for programs. Everything is classified here by name; what is not listed
as plain counts as a request, so that a new option is refused until somebody has thought about it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rllib_minestudio.env.callbacks.builder import CALLBACKS, SUFFIX
from rllib_minestudio.foundation.options import is_list, shown

PLAIN_OPTIONS = frozenset(
    {
        "engine",
        "action_type",
        "obs_size",
        "render_size",
        "sampling",
        "gamma",
        "seed",
        "inventory",
        "preferred_spawn_biome",
        "natural_animals",
        "num_empty_frames",
        "camera_config",
        "render_mode",
        "worker_index",
        "vector_index",
    }
)
"""Options of an environment that are numbers, or names from a list."""

PLAIN_MINECRAFT_OPTIONS = frozenset(
    {
        "java_memory",
        "first_port",
        "starts_at_once",
        "launch_timeout_s",
        "reset_timeout_s",
        "step_timeout_s",
        "restart_interval",
    }
)
"""The same of the option `minecraft`. The others choose a program, or a device."""

PATHS_OF_CALLBACKS = {
    "Record": ("record_path",),
    "SavedGames": ("recordings",),
    "TaskFile": ("path",),
}
"""Arguments of built-in callbacks that are paths; all others are data."""

CONTAINERS = {"Compose": "callbacks"}
"""Arguments of built-in callbacks that are lists of callbacks."""


def requests_beyond_data(env_config: Mapping[str, Any]) -> list[str]:
    """Return what an environment's options ask for beyond data, in words.

    Args:
        env_config: The options, which need not be valid.

    Returns:
        One phrase for each class and path, by its name; empty if all is data.
    """
    requests = []
    for name, value in env_config.items():
        where = f"env_config.{name}"
        if name == "callbacks":
            requests += requests_of_callbacks(where, value)
        elif name == "minecraft" and isinstance(value, Mapping):
            requests += [
                f"{where}.{inner} {shown(part)} (a program or device)"
                for inner, part in value.items()
                if inner not in PLAIN_MINECRAFT_OPTIONS and part is not None
            ]
        elif name not in PLAIN_OPTIONS and value is not None:
            requests.append(f"{where} {shown(value)} (a path, or an option unknown here)")
    return requests


def requests_of_callbacks(where: str, specs: Any) -> list[str]:
    """As `requests_beyond_data`, for a list of callbacks that is named `where`."""
    requests = []
    for i, spec in enumerate(specs if is_list(specs) else [specs]):
        place = f"{where}.{i}"
        name: Any = spec
        arguments: Any = {}
        if isinstance(spec, Mapping) and len(spec) == 1:
            ((name, arguments),) = spec.items()
        short = name.removesuffix(SUFFIX) if isinstance(name, str) else None
        if short not in CALLBACKS:
            requests.append(f"{place} {shown(name)} (a class to import and run)")
            continue
        if not isinstance(arguments, Mapping):  # the only argument, without its name
            first = next(iter((*PATHS_OF_CALLBACKS.get(short, ()), CONTAINERS.get(short, ""))))
            arguments = {first: arguments} if first else {}
        requests += [
            f"{place}.{short}.{argument} {shown(arguments[argument])} (a path)"
            for argument in PATHS_OF_CALLBACKS.get(short, ())
            if argument in arguments
        ]
        inner = CONTAINERS.get(short)
        if inner in arguments:
            requests += requests_of_callbacks(f"{place}.{short}.{inner}", arguments[inner])
    return requests
