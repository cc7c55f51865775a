"""The options of `MineStudioEnv`: names and defaults as MineStudio's, checked all at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from rllib_minestudio.env.actions import CameraConfig
from rllib_minestudio.env.backends.minecraft.process import MinecraftOptions
from rllib_minestudio.env.backends.protocol import NO_SNAPSHOTS
from rllib_minestudio.env.callbacks import SavedGamesCallback, check_callbacks
from rllib_minestudio.env.callbacks.builder import CALLBACKS, SUFFIX
from rllib_minestudio.env.voxel import (
    AVERAGE,
    HIGHEST_GAMMA,
    LOWEST_GAMMA,
    MINESTUDIO_GAMMA,
    SAMPLINGS,
)
from rllib_minestudio.env.voxel.render.resource_pack import PackError, ResourcePack, not_a_pack
from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.foundation.options import Problems, is_integer, is_list, is_number, shown

VOXEL, MINECRAFT = "voxel", "minecraft"
"""The two engines: the embedded one, and the real game."""
ENGINES = (VOXEL, MINECRAFT)
ACTION_TYPES = ("agent", "env")
RENDER_MODES = ("rgb_array",)

MIN_FRAME_SIDE, MAX_FRAME_SIDE = 16, 4096
"""Bounds of a frame's width and height in pixels; smaller frames have no room for the hotbar."""
MOST_OBSERVED_PIXELS = 1024 * 1024
"""Limit on the pixels of an observation. Spaces, the validation of a config and each stored step
cost so many bytes per pixel that 4096 x 4096 would take gigabytes before anything is played."""
MAX_INVENTORY_SLOT = 40
"""0-8 hotbar, 9-35 inventory, 36-39 feet to head, 40 off hand."""


SET_BY_RLLIB = ("worker_index", "vector_index")
"""Options that RLlib sets in each environment."""

_LARGEST = {
    "seed": 2**63 - 1,
    "num_empty_frames": 100_000,
    "worker_index": 1_000_000,
    "vector_index": 1_000_000,
}
"""Largest values of the integers, which start at 0. 100,000 empty frames take an hour."""


@dataclass(frozen=True)
class EnvOptions:
    """Everything that defines an environment.

    Attributes:
        engine: "voxel", the embedded engine, or "minecraft", the real game.
        action_type: "agent" for VPT's tokens, "env" for keys and degrees.
        obs_size: (width, height) of observations in pixels; at most 1024 x 1024 in total.
        render_size: (width, height) of frames returned by `render()`; the real game draws at
            this size, and observations are scaled from it.
        sampling: How the embedded engine draws a frame. "samples": from those pixels of a 640x360
            window that MineStudio's scaling keeps, as VPT saw the game; "average": each pixel
            represents its whole area, in about half the time. Experiments with VPT's published
            sizes (1x, 2x, 3x) use "samples" unless they specify otherwise.
        gamma: Brightness of dark places in the embedded engine, 0 to 16. The game's slider goes
            from 0 ("moody") to 1 ("bright"); MineStudio plays at 2.
        seed: Seed of all episodes that are not seeded by `reset(seed=...)`.
        inventory: What the player carries after a hard reset: slot 0-40 -> `{"type": name,
            "quantity": n}`.
        preferred_spawn_biome: Biome of the spawn point after a hard reset; None for any.
        natural_animals: Whether herds of animals come with the land in the embedded engine, as they
            always do in the real game. By default they do, unless a callback summons mobs, such as
            `SummonMobs`, or `Commands` with a `/summon`.
        num_empty_frames: Game ticks without any key pressed at the start of an episode.
        callbacks: What `build_callbacks` takes: names, mappings or objects.
        camera_config: The camera's bins, as a CameraConfig or a mapping of its fields.
        render_mode: "rgb_array", or None if `render()` will not be used.
        resource_pack: Path of a folder, zip or jar in the layout of Minecraft's resource packs;
            its textures replace those of the embedded engine. None for the engine's own.
        minecraft: How the real game is launched; see `MinecraftOptions`.
        worker_index: Index of the worker among those with the same options. Together with
            `vector_index` it determines the episodes; RLlib sets both.
        vector_index: Index of the environment in its worker.
    """

    engine: str = VOXEL
    action_type: str = "agent"
    obs_size: tuple[int, int] = (128, 128)
    render_size: tuple[int, int] = (640, 360)
    sampling: str = AVERAGE
    gamma: float = MINESTUDIO_GAMMA
    seed: int = 0
    inventory: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    preferred_spawn_biome: str | None = None
    natural_animals: bool | None = None
    num_empty_frames: int = 20
    callbacks: tuple[Any, ...] = ()
    camera_config: CameraConfig = field(default_factory=CameraConfig)
    render_mode: str | None = "rgb_array"
    resource_pack: str | None = None
    minecraft: MinecraftOptions = field(default_factory=MinecraftOptions)
    worker_index: int = 0
    vector_index: int = 0

    @classmethod
    def from_mapping(cls, options: Mapping[str, Any]) -> EnvOptions:
        """Check options from a user or a YAML file, and fill in the defaults.

        Raises:
            InvalidOptionsError: If anything is wrong; lists all problems.
        """
        problems = Problems()
        known = problems.known("env option", options, [option.name for option in fields(cls)])
        for name in ("obs_size", "render_size", "callbacks"):
            if is_list(known.get(name)):
                known[name] = tuple(known[name])
        known["camera_config"] = _camera_config(problems, known.get("camera_config"))
        known["minecraft"] = _minecraft_options(problems, known.get("minecraft"))
        known["inventory"] = {} if (given := known.get("inventory")) is None else given
        checked = cls(**known)
        _check(problems, checked)
        problems.raise_if_any()
        return checked


def _camera_config(problems: Problems, given: Any) -> CameraConfig:
    """Return the CameraConfig given as None, a mapping, or a CameraConfig."""
    if isinstance(given, CameraConfig):
        return given
    if given is not None and not isinstance(given, Mapping):
        problems.add("camera_config", given, "must be a mapping or a CameraConfig")
        return CameraConfig()
    names = [option.name for option in fields(CameraConfig)]
    try:
        return CameraConfig(**problems.known("field of camera_config", given or {}, names))
    except InvalidOptionsError as error:
        problems.include(error)
        return CameraConfig()


def _minecraft_options(problems: Problems, given: Any) -> MinecraftOptions:
    """Return the MinecraftOptions given as None, a mapping, or MinecraftOptions."""
    try:
        return MinecraftOptions.from_mapping({} if given is None else given)
    except InvalidOptionsError as error:
        problems.include(error)
        return MinecraftOptions()


def _check(problems: Problems, options: EnvOptions) -> None:
    problems.choice("engine", options.engine, ENGINES)
    problems.choice("action_type", options.action_type, ACTION_TYPES)
    if options.render_mode is not None:
        problems.choice("render_mode", options.render_mode, RENDER_MODES)
    _check_size(problems, "obs_size", options.obs_size, MOST_OBSERVED_PIXELS)
    _check_size(problems, "render_size", options.render_size, MAX_FRAME_SIDE**2)
    problems.choice("sampling", options.sampling, SAMPLINGS)
    if not is_number(options.gamma) or not LOWEST_GAMMA <= options.gamma <= HIGHEST_GAMMA:
        rule = f"must be a number from {LOWEST_GAMMA:g} to {HIGHEST_GAMMA:g}"
        problems.add("gamma", options.gamma, rule)
    for name in ("seed", "num_empty_frames", "worker_index", "vector_index"):
        value = getattr(options, name)
        if not is_integer(value) or not 0 <= value <= _LARGEST[name]:
            problems.add(name, value, f"must be an integer from 0 to {_LARGEST[name]}")
    biome: Any = options.preferred_spawn_biome
    if biome is not None and not isinstance(biome, str):
        problems.add("preferred_spawn_biome", biome, "must be the name of a biome, or None")
    if options.natural_animals not in (None, True, False):
        problems.add("natural_animals", options.natural_animals, "must be true, false or None")
    _check_inventory(problems, options.inventory)
    _check_resource_pack(problems, options.resource_pack)
    try:
        begin_in_games = [
            callback
            for callback in check_callbacks(options.callbacks)
            if isinstance(callback, SavedGamesCallback)
        ]
        if begin_in_games and options.engine == MINECRAFT:
            problems.messages.append(f"callbacks: SavedGames: {NO_SNAPSHOTS}")
    except InvalidOptionsError as error:
        problems.include(error)


def _check_resource_pack(problems: Problems, path: Any) -> None:
    """Note a path without a resource pack; its textures are not read."""
    if path is None:
        return
    if not isinstance(path, str):
        problems.add("resource_pack", path, "must be the path of a resource pack, or None")
        return
    try:
        ResourcePack(path)
    except PackError as error:
        problems.messages.append(not_a_pack(path, error))


def _check_size(problems: Problems, name: str, size: Any, most_pixels: int) -> None:
    is_pair = isinstance(size, tuple) and len(size) == 2 and all(map(is_integer, size))
    if not is_pair or not all(MIN_FRAME_SIDE <= side <= MAX_FRAME_SIDE for side in size):
        rule = f"must be [width, height], integers from {MIN_FRAME_SIDE} to {MAX_FRAME_SIDE}"
        problems.add(name, size, rule)
    elif size[0] * size[1] > most_pixels:
        problems.add(name, size, f"must have at most {most_pixels:,} pixels, such as 1280 x 720")


def _check_inventory(problems: Problems, inventory: Any) -> None:
    """Note what is wrong with the initial inventory, except for the names of items."""
    if not isinstance(inventory, Mapping):
        problems.add("inventory", inventory, "must be a mapping from slot to stack")
        return
    for slot, stack in inventory.items():
        if not is_integer(slot) or not 0 <= slot <= MAX_INVENTORY_SLOT:
            rule = f"must have slots from 0 to {MAX_INVENTORY_SLOT} as keys"
            problems.add("inventory", slot, rule)
        elif not isinstance(stack, Mapping) or not set(stack) <= {"type", "quantity"}:
            problems.add(f"inventory[{slot}]", stack, "must be a mapping of type and quantity")
        else:
            if not isinstance(stack.get("type"), str):
                problems.add(f"inventory[{slot}].type", stack.get("type"), "must be a string")
            quantity: Any = stack.get("quantity", 1)
            if not is_integer(quantity) or not 1 <= quantity <= 64:
                rule = "must be an integer from 1 to 64"
                problems.add(f"inventory[{slot}].quantity", quantity, rule)


# ------------------- what an environment's options ask for beyond data, if somebody else wrote them
# Options in a file from elsewhere may name classes, which are imported and run, and paths, which
# are read, written, or searched for programs. Everything is classified here by name; what is not
# listed as plain counts as a request, so that a new option is refused until somebody has thought
# about it.

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
