"""Names that all layers share: VPT's buttons, keys of infos, scripted agents, public names.

VPT's buttons are groups of mutually exclusive keys. Tokens enumerate the Cartesian product of
`BUTTON_GROUPS`, the last group varying fastest. One more token is the inventory key, which excludes
all others. The environment decodes tokens to keys, and the network's heads are built from the
groups.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping
from importlib import import_module
from typing import Any

HOTBAR_KEYS: tuple[str, ...] = tuple(f"hotbar.{slot}" for slot in range(1, 10))

KEYS: tuple[str, ...] = (
    *("attack", "back", "forward", "jump", "left", "right", "sneak", "sprint", "use", "drop"),
    "inventory",
    *HOTBAR_KEYS,
)
"""Every key that a token can press, in VPT's order."""

BUTTON_GROUPS: dict[str, tuple[str, ...]] = {
    "hotbar": ("none", *HOTBAR_KEYS),
    "fore_back": ("none", "forward", "back"),
    "left_right": ("none", "left", "right"),
    "sprint_sneak": ("none", "sprint", "sneak"),
    "use": ("none", "use"),
    "drop": ("none", "drop"),
    "attack": ("none", "attack"),
    "jump": ("none", "jump"),
    "camera": ("none", "camera"),
}
"""Mutually exclusive choices, most significant group first."""

INVENTORY_TOKEN = math.prod(len(choices) for choices in BUTTON_GROUPS.values())
NUM_BUTTONS = INVENTORY_TOKEN + 1
"""Number of tokens: 8641."""


# ------------ keys of an environment's infos that describe the course of an episode, and its frames

TASK = "task"
"""The name of the episode's task."""
SUCCESS = "success"
"""Whether the task is solved; the last step's value counts."""
ENGINE_ERROR = "engine_error"
"""Why `MineStudioEnv` truncated the episode early, in one line."""
RESET_ERROR = "reset_error"
"""Why `MineStudioEnv` built a new engine before the episode could begin, in one line."""
POV = "pov"
"""The frame as rendered by the game, before it was scaled to an observation."""


# ---------------------------- the names of the scripted agents, for `rllib play` and `rllib record`

HUNTER, PERFECT_HUNTER, RANDOM = "hunter", "perfect-hunter", "random"
TOOLMAKER, PRACTISED_TOOLMAKER = "toolmaker", "practised-toolmaker"
TOOLMAKERS = (TOOLMAKER, PRACTISED_TOOLMAKER)

AGENTS = {
    HUNTER: "hunts like a person: sees what the frame shows, reacts late, turns smoothly, misses, "
    "pauses",
    PERFECT_HUNTER: "knows where every animal is and turns at once",
    TOOLMAKER: "works its way up to an iron pickaxe through the game's screens; sees what the "
    "frame shows",
    PRACTISED_TOOLMAKER: "the toolmaker with a quicker hand, which often goes astray and is put "
    "right: for clones to learn from",
    RANDOM: "draws every action uniformly",
}
"""Name -> what the agent does. `env/agents/scripted.py` builds them."""


def agents_help() -> str:
    """Return a list of the agents and what they do, for a command's help."""
    column = max(map(len, AGENTS)) + 5
    lines = [
        textwrap.fill(f"{f'  {name}':{column}}{sentence}", 100, subsequent_indent=" " * column)
        for name, sentence in AGENTS.items()
    ]
    return "\n".join(lines)


# ----------------------- a package's public names, loaded from their modules on first use (PEP 562)


def load_public_name(package: str, name: str, home_of: Mapping[str, str]) -> Any:
    """Return what a package's `__getattr__` should return.

    Args:
        package: Name of the package.
        name: The requested name.
        home_of: Public name -> module that defines it.

    Raises:
        AttributeError: The package has no such public name.
        ImportError: The module cannot be imported.
    """
    if name not in home_of:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    home = home_of[name]
    try:
        module = import_module(home)
    except AttributeError as error:
        # Usually a library of the wrong version. `from package import name` would take this error
        # to mean that there is no such name, and hide the cause.
        raise ImportError(f"{home} cannot be imported: {error}", name=home) from error
    return getattr(module, name)
