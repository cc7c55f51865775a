"""The toolmaker, a scripted agent that works its way up to an iron pickaxe.

agent       `Toolmaker`: senses in, action tokens out
career      one step of the plan after the other
plan        the tech tree: what to do next
gathering   looking for blocks, mining them, picking up what drops
crafting    recipes clicked into a grid
smelting    a furnace filled and emptied
stations    screens opened at the blocks that have them, and left
placing     blocks put down and used
walking     along a path, jumping and digging; paths finds it
mining      attack held on a block
screens     a screen's slots clicked
hands       what is in the hand
cursor      where the cursor is
body        what is felt and seen in a tick
sight       what has been seen so far
"""

from rllib_minestudio.env.agents.toolmaker.agent import DEFAULT_GOAL, Toolmaker
from rllib_minestudio.env.agents.toolmaker.plan import knowledge

__all__ = ["DEFAULT_GOAL", "Toolmaker", "knowledge"]
