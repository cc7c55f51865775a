"""Callbacks of MineStudio's simulator loop, which turn a world into a task."""

from rllib_minestudio.env.callbacks.base import HOOKS, Compose, MinecraftCallback
from rllib_minestudio.env.callbacks.builder import (
    CALLBACKS,
    ForeignCallback,
    build_callbacks,
    check_callbacks,
    summon_mobs,
)
from rllib_minestudio.env.callbacks.extra_observations import (
    CursorCallback,
    InventoryCallback,
    MaskActionsCallback,
    PrevActionCallback,
    VoxelsCallback,
)
from rllib_minestudio.env.callbacks.initial_state import (
    CommandsCallback,
    InitInventoryCallback,
    SummonMobsCallback,
)
from rllib_minestudio.env.callbacks.record import RecordCallback, SpeedTestCallback
from rllib_minestudio.env.callbacks.resets import (
    FastResetCallback,
    HardResetCallback,
    JudgeResetCallback,
    SavedGamesCallback,
)
from rllib_minestudio.env.callbacks.rewards import (
    GateRewardsCallback,
    RewardsCallback,
    TechTreeRewardsCallback,
)
from rllib_minestudio.env.callbacks.tasks import TaskCallback, TaskFileCallback
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
    "SavedGamesCallback",
    "SpeedTestCallback",
    "SummonMobsCallback",
    "TaskCallback",
    "TaskFileCallback",
    "TechTreeRewardsCallback",
    "VoxelsCallback",
    "build_callbacks",
    "check_callbacks",
    "summon_mobs",
]
