"""MineStudioPPO, its data path (env runner -> fragment -> replay buffer -> learner), MineStudioBC.

The public names are loaded on first use. The entry point of the environments' processes is in this
package, and those processes must import neither Ray nor torch.
"""

from typing import TYPE_CHECKING, Any

from rllib_minestudio.foundation.names import load_public_name

if TYPE_CHECKING:
    from rllib_minestudio.algorithms.bc import MineStudioBC, MineStudioBCConfig
    from rllib_minestudio.algorithms.ppo import MineStudioPPO, MineStudioPPOConfig

__all__ = ["MineStudioBC", "MineStudioBCConfig", "MineStudioPPO", "MineStudioPPOConfig"]

_HOME_OF = {
    "MineStudioBC": "rllib_minestudio.algorithms.bc",
    "MineStudioBCConfig": "rllib_minestudio.algorithms.bc",
    "MineStudioPPO": "rllib_minestudio.algorithms.ppo",
    "MineStudioPPOConfig": "rllib_minestudio.algorithms.ppo",
}


def __getattr__(name: str) -> Any:
    return load_public_name(__name__, name, _HOME_OF)
