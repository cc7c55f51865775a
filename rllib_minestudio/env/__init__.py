"""The environment: MineStudio's simulator interface as a gymnasium environment.

Imports neither Ray nor torch.
"""

from rllib_minestudio.env.actions import ActionMapper, CameraConfig
from rllib_minestudio.env.env_options import EnvOptions
from rllib_minestudio.env.minestudio_env import MineStudioEnv, make_env
from rllib_minestudio.foundation.episode_info import ENGINE_ERROR

__all__ = [
    "ENGINE_ERROR",
    "ActionMapper",
    "CameraConfig",
    "EnvOptions",
    "MineStudioEnv",
    "make_env",
]
