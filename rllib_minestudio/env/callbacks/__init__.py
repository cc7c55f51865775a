"""Callbacks of MineStudio's simulator loop: what turns a world into a task."""

from rllib_minestudio.env.callbacks.base import HOOKS, MinecraftCallback
from rllib_minestudio.env.callbacks.builder import CALLBACKS, build_callbacks
from rllib_minestudio.env.callbacks.commands import CommandsCallback
from rllib_minestudio.env.callbacks.compose import Compose
from rllib_minestudio.env.callbacks.fast_reset import FastResetCallback
from rllib_minestudio.env.callbacks.foreign import ForeignCallback
from rllib_minestudio.env.callbacks.judge_reset import JudgeResetCallback
from rllib_minestudio.env.callbacks.mask_actions import MaskActionsCallback
from rllib_minestudio.env.callbacks.rewards import STATISTICS, RewardsCallback
from rllib_minestudio.env.callbacks.summon_mobs import SummonMobsCallback
from rllib_minestudio.env.callbacks.task_file import TaskFileCallback

__all__ = [
    "CALLBACKS",
    "HOOKS",
    "STATISTICS",
    "CommandsCallback",
    "Compose",
    "FastResetCallback",
    "ForeignCallback",
    "JudgeResetCallback",
    "MaskActionsCallback",
    "MinecraftCallback",
    "RewardsCallback",
    "SummonMobsCallback",
    "TaskFileCallback",
    "build_callbacks",
]
