"""Agents that need no network: scripted hunters, the toolmaker and the random policy."""

from rllib_minestudio.env.agents.hunter import HumanlikeHunter, HumanLimits, ScriptedHunter
from rllib_minestudio.env.agents.scripted import RandomAgent
from rllib_minestudio.env.agents.toolmaker import Toolmaker

__all__ = ["HumanLimits", "HumanlikeHunter", "RandomAgent", "ScriptedHunter", "Toolmaker"]
