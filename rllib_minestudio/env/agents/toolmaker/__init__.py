"""The toolmaker, a scripted agent that works its way up to an iron pickaxe.

agent       `Toolmaker`, from senses to action tokens; one step of the plan after another
plan        the tech tree: what to do next; crafting and smelting on an open screen
gathering   finding blocks, mining them, picking up drops; stations placed, opened and left
walking     finding and following a path, jumping and digging; attack held on a block
body        what is felt and seen, now and so far; what is in the hand; the cursor, slots clicked
"""

from rllib_minestudio.env.agents.toolmaker.agent import DEFAULT_GOAL, Toolmaker
from rllib_minestudio.env.agents.toolmaker.plan import knowledge

__all__ = ["DEFAULT_GOAL", "Toolmaker", "knowledge"]
