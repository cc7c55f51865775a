"""docs/env_options.md: every option of `MineStudioEnv`."""

from __future__ import annotations

from rllib_minestudio.env.actions import CameraConfig
from rllib_minestudio.env.backends.minecraft.launch_options import MinecraftOptions
from rllib_minestudio.env.env_options import SET_BY_RLLIB, EnvOptions
from tools.reference.tables import dataclass_table

_INTRODUCTION = """\
# Options of the environment

What `MineStudioEnv(...)` takes in Python, and `env_config:` in an experiment file.

This page is generated from the code: `python -m tools.reference docs`.
"""


_MACHINES_OWN = {"starts_at_once": "a quarter of the CPU cores"}
"""Wording of defaults that depend on the machine on which this page is generated."""


def page() -> str:
    """Return docs/env_options.md."""
    return "\n".join(
        [
            _INTRODUCTION,
            dataclass_table(EnvOptions, without=SET_BY_RLLIB),
            "[callback_options.md](callback_options.md) lists the callbacks and their arguments.\n",
            "## `camera_config`\n",
            dataclass_table(CameraConfig),
            "## `minecraft`\n",
            "Only read with `engine: minecraft` ([minecraft.md](minecraft.md)).\n",
            dataclass_table(MinecraftOptions, defaults=_MACHINES_OWN),
        ]
    )
