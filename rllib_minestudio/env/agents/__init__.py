"""Agents that need no network: a scripted hunter and the random policy."""

from rllib_minestudio.env.agents.hunter import ScriptedHunter
from rllib_minestudio.env.agents.random_agent import RandomAgent

__all__ = ["RandomAgent", "ScriptedHunter"]
