"""Every option of `MineStudioEnv`."""

from __future__ import annotations

from rllib_minestudio.env.actions import CameraConfig
from rllib_minestudio.env.backends.minecraft.process import MinecraftOptions
from rllib_minestudio.env.env_options import SET_BY_RLLIB, EnvOptions
from tools.reference.tables import dataclass_table

_INTRODUCTION = """\
## The environment

The keys of `config.env_config`, and the arguments of `MineStudioEnv`.
"""


_MACHINES_OWN = {"starts_at_once": "a quarter of the CPU cores"}
"""Wording of defaults that depend on the machine on which this page is generated."""


def section() -> str:
    """Return the section of the options' page."""
    return "\n".join(
        [
            _INTRODUCTION,
            dataclass_table(EnvOptions, without=SET_BY_RLLIB),
            "### `env_config.camera_config`\n",
            dataclass_table(CameraConfig),
            "### `env_config.minecraft`\n",
            "Only read with [`engine: minecraft`](minecraft.md#the-real-game).\n",
            dataclass_table(MinecraftOptions, defaults=_MACHINES_OWN),
        ]
    )
