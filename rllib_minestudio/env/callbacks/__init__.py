"""Callbacks of MineStudio's simulator loop: what turns a world into a task."""

from rllib_minestudio.env.callbacks.base import HOOKS, MinecraftCallback
from rllib_minestudio.env.callbacks.builder import CALLBACKS, build_callbacks, check_callbacks
from rllib_minestudio.env.callbacks.commands import CommandsCallback
from rllib_minestudio.env.callbacks.compose import Compose
from rllib_minestudio.env.callbacks.cursor import CursorCallback
from rllib_minestudio.env.callbacks.fast_reset import FastResetCallback
from rllib_minestudio.env.callbacks.foreign import ForeignCallback
from rllib_minestudio.env.callbacks.gate_rewards import GateRewardsCallback
from rllib_minestudio.env.callbacks.hard_reset import HardResetCallback
from rllib_minestudio.env.callbacks.init_inventory import InitInventoryCallback
from rllib_minestudio.env.callbacks.inventory import InventoryCallback
from rllib_minestudio.env.callbacks.judge_reset import JudgeResetCallback
from rllib_minestudio.env.callbacks.mask_actions import MaskActionsCallback
from rllib_minestudio.env.callbacks.prev_action import PrevActionCallback
from rllib_minestudio.env.callbacks.record import RecordCallback
from rllib_minestudio.env.callbacks.rewards import RewardsCallback
from rllib_minestudio.env.callbacks.speed_test import SpeedTestCallback
from rllib_minestudio.env.callbacks.summon_mobs import SummonMobsCallback
from rllib_minestudio.env.callbacks.task import TaskCallback
from rllib_minestudio.env.callbacks.task_file import TaskFileCallback
from rllib_minestudio.env.callbacks.tech_tree import TechTreeRewardsCallback
from rllib_minestudio.env.callbacks.voxels import VoxelsCallback
from rllib_minestudio.env.voxel.game.statistics import STATISTICS

__all__ = [
    "CALLBACKS",
    "HOOKS",
    "STATISTICS",
    "CommandsCallback",
    "Compose",
    "CursorCallback",
    "FastResetCallback",
    "ForeignCallback",
    "GateRewardsCallback",
    "HardResetCallback",
    "InitInventoryCallback",
    "InventoryCallback",
    "JudgeResetCallback",
    "MaskActionsCallback",
    "MinecraftCallback",
    "PrevActionCallback",
    "RecordCallback",
    "RewardsCallback",
    "SpeedTestCallback",
    "SummonMobsCallback",
    "TaskCallback",
    "TaskFileCallback",
    "TechTreeRewardsCallback",
    "VoxelsCallback",
    "build_callbacks",
    "check_callbacks",
]
