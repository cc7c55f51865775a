"""MineStudioPPO and its data path: env runner -> fragment -> replay buffer -> learner.

The public names are loaded on first use: environments run in processes of their own, whose entry
point lies in this package and which shall import neither Ray nor torch.
"""

from typing import TYPE_CHECKING, Any

from rllib_minestudio.public_names import load_public_name

if TYPE_CHECKING:
    from rllib_minestudio.algorithms.algorithm import MineStudioPPO
    from rllib_minestudio.algorithms.config import MineStudioPPOConfig

__all__ = ["MineStudioPPO", "MineStudioPPOConfig"]

_HOME_OF = {
    "MineStudioPPO": "rllib_minestudio.algorithms.algorithm",
    "MineStudioPPOConfig": "rllib_minestudio.algorithms.config",
}


def __getattr__(name: str) -> Any:
    return load_public_name(__name__, name, _HOME_OF)
