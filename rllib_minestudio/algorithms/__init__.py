"""MineStudioPPO and its data path: env runner -> fragment -> replay buffer -> learner."""

from rllib_minestudio.algorithms.algorithm import MineStudioPPO
from rllib_minestudio.algorithms.config import MineStudioPPOConfig

__all__ = ["MineStudioPPO", "MineStudioPPOConfig"]
