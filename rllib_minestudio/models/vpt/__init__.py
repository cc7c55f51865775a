"""OpenAI's VPT network in torch and a little numba; nothing here knows of Ray or RLlib."""

from rllib_minestudio.models.vpt.config import PRESETS, VPTConfig
from rllib_minestudio.models.vpt.network import VPTNetwork, VPTOutput
from rllib_minestudio.models.vpt.recurrent_state import VPTState

__all__ = ["PRESETS", "VPTConfig", "VPTNetwork", "VPTOutput", "VPTState"]
