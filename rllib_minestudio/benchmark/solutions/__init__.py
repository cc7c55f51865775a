"""Scripted solutions of the benchmark's tasks: they show that a task can be solved.

They look at the embedded engine's state, and act by MineStudio's actions only. A task file names a
family and its parameters, as in `solution: {mine: {blocks: [dirt], count: 3}}`.

agent       `SolutionAgent`: plays a solution in an environment
registry    the families by name; `in_turn` plays several
family      what a family is, and checks of parameters
digging     mine, clear, dig_and_fill
building    pillar; gate is a module of its own
making      craft, smelt, chest; recipes are the engine's
moving      walk, back, find_biome, tunnel
hunting     hunt
player      the toolmaker's body, knowing where all is
"""

from rllib_minestudio.benchmark.solutions.registry import FAMILIES, SolutionAgent, make_solution

__all__ = ["FAMILIES", "SolutionAgent", "make_solution"]
