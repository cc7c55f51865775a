"""MineStudioPPO and its data path: env runner -> fragment -> replay buffer -> learner.

The public names are loaded on first use: environments run in processes of their own, whose entry
point lies in this package and which shall import neither Ray nor torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rllib_minestudio.algorithms.algorithm import MineStudioPPO
    from rllib_minestudio.algorithms.config import MineStudioPPOConfig

__all__ = ["MineStudioPPO", "MineStudioPPOConfig"]

_HOME_OF = {
    "MineStudioPPO": "rllib_minestudio.algorithms.algorithm",
    "MineStudioPPOConfig": "rllib_minestudio.algorithms.config",
}


def __getattr__(name: str) -> Any:
    """Import a public name from its module on first access (PEP 562)."""
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOME_OF[name]), name)
