"""Reinforcement learning in Minecraft with Ray RLlib.

Public names are loaded on first use, so `import rllib_minestudio` takes milliseconds and
`MineStudioEnv` works without importing Ray or torch. The import registers the algorithms with Ray
Tune as `MineStudioPPO` and `MineStudioBC`, the environment with gymnasium as `MineStudio-v0` and
with Tune as `MineStudio`, makes processes start faster (`registration.py`), and sets how torch's
threads wait and what priority Ray's workers run at (`foundation/processes.py`).
"""

from typing import TYPE_CHECKING, Any

from rllib_minestudio import registration
from rllib_minestudio.foundation.names import load_public_name
from rllib_minestudio.foundation.processes import set_processor_environment
from rllib_minestudio.registration import register_hooks, register_names

if TYPE_CHECKING:
    from rllib_minestudio.algorithms import (
        MineStudioBC,
        MineStudioBCConfig,
        MineStudioPPO,
        MineStudioPPOConfig,
    )
    from rllib_minestudio.env import MineStudioEnv
    from rllib_minestudio.evaluation.inference import Policy

__version__ = "0.1.0"
__all__ = [
    "MineStudioBC",
    "MineStudioBCConfig",
    "MineStudioEnv",
    "MineStudioPPO",
    "MineStudioPPOConfig",
    "Policy",
]

_HOME_OF = {
    "MineStudioBC": "rllib_minestudio.algorithms",
    "MineStudioBCConfig": "rllib_minestudio.algorithms",
    "MineStudioEnv": "rllib_minestudio.env",
    "MineStudioPPO": "rllib_minestudio.algorithms",
    "MineStudioPPOConfig": "rllib_minestudio.algorithms",
    "Policy": "rllib_minestudio.evaluation.inference",
}


def __getattr__(name: str) -> Any:
    return load_public_name(__name__, name, _HOME_OF)


def __dir__() -> list[str]:
    """List the lazily loaded names too, for tab completion."""
    return sorted([*globals(), *__all__])


set_processor_environment()  # before anything loads torch or starts Ray
registration.quicken_imports()  # likewise
registration.check_ray_version()
register_names()
register_hooks()
