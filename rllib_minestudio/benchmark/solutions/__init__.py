"""Scripted solutions of the benchmark's tasks, which show that the tasks can be solved.

They read the embedded engine's state, but act only through MineStudio's actions. A task file names
a family and its parameters, as in `solution: {mine: {blocks: [dirt], count: 3}}`.

registry    the families by name, `in_turn`, and the agent `SolutionAgent`
family      the base class, checks of parameters, and the body, which knows the whole world
gathering   mine, clear, dig_and_fill, walk, back, find_biome, tunnel, hunt
building    pillar, gate
crafting    craft, smelt, chest
"""

from rllib_minestudio.benchmark.solutions.registry import FAMILIES, SolutionAgent, make_solution

__all__ = ["FAMILIES", "SolutionAgent", "make_solution"]
