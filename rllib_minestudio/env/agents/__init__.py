"""Agents that need no network: scripted hunters, the toolmaker and the random policy."""

from rllib_minestudio.env.agents.human_limits import HumanLimits
from rllib_minestudio.env.agents.humanlike import HumanlikeHunter
from rllib_minestudio.env.agents.hunter import ScriptedHunter
from rllib_minestudio.env.agents.random_agent import RandomAgent
from rllib_minestudio.env.agents.toolmaker import Toolmaker

__all__ = ["HumanLimits", "HumanlikeHunter", "RandomAgent", "ScriptedHunter", "Toolmaker"]
