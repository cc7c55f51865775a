"""OpenAI's VPT network in torch and a little numba; nothing here depends on Ray or RLlib."""

from rllib_minestudio.models.vpt.attention import VPTState
from rllib_minestudio.models.vpt.config import PRESETS, VPTConfig
from rllib_minestudio.models.vpt.network import VPTNetwork, VPTOutput

__all__ = ["PRESETS", "VPTConfig", "VPTNetwork", "VPTOutput", "VPTState"]
