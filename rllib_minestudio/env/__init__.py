"""The environment: MineStudio's simulator interface as a gymnasium environment.

Imports neither Ray nor torch.
"""

from typing import TYPE_CHECKING, Any

from rllib_minestudio.env.actions import ActionMapper, CameraConfig
from rllib_minestudio.env.env_options import EnvOptions
from rllib_minestudio.env.flat_spaces import FlatSpaces
from rllib_minestudio.env.minestudio_env import MineStudioEnv, make_env
from rllib_minestudio.foundation.names import ENGINE_ERROR, load_public_name

if TYPE_CHECKING:
    from rllib_minestudio.env.recorder import EpisodeRecorder, RecorderOptions

__all__ = [
    "ENGINE_ERROR",
    "ActionMapper",
    "CameraConfig",
    "EnvOptions",
    "EpisodeRecorder",
    "FlatSpaces",
    "MineStudioEnv",
    "RecorderOptions",
    "make_env",
]

_HOME_OF = {
    "EpisodeRecorder": "rllib_minestudio.env.recorder",
    "RecorderOptions": "rllib_minestudio.env.recorder",
}


def __getattr__(name: str) -> Any:
    return load_public_name(__name__, name, _HOME_OF)
