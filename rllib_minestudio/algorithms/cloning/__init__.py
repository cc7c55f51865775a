"""MineStudioBC: behaviour cloning of recorded episodes, as RLlib's BC with VPT's memory.

recordings -> `data` (Ray Data) -> windows -> `learner` -> weights, validated and played.
"""

from rllib_minestudio.algorithms.cloning.algorithm import MineStudioBC
from rllib_minestudio.algorithms.cloning.config import MineStudioBCConfig

__all__ = ["MineStudioBC", "MineStudioBCConfig"]
