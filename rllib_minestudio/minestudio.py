"""MineStudio's names, for programs that were written for MineStudio: change their imports.

    from minestudio.inference import EpisodePipeline, MineGenerator, InfoBaseFilter
    from minestudio.simulator import MinecraftSim

becomes

    from rllib_minestudio.minestudio import (
        EpisodePipeline, InfoBaseFilter, MineGenerator, MinecraftSim
    )

docs/minecraft.md shows a whole program side by side, and lists the differences.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch

from rllib_minestudio.cli.convert.online import start_rolloutmanager, start_trainer
from rllib_minestudio.env import CameraConfig, MineStudioEnv
from rllib_minestudio.env.callbacks import (
    CommandsCallback,
    FastResetCallback,
    GateRewardsCallback,
    HardResetCallback,
    InitInventoryCallback,
    JudgeResetCallback,
    MaskActionsCallback,
    MinecraftCallback,
    PrevActionCallback,
    RecordCallback,
    RewardsCallback,
    SpeedTestCallback,
    SummonMobsCallback,
    TaskCallback,
    VoxelsCallback,
)
from rllib_minestudio.env.callbacks.base import Info, Obs
from rllib_minestudio.evaluation.filters import EpisodeFilter, InfoBaseFilter
from rllib_minestudio.evaluation.inference import Policy
from rllib_minestudio.evaluation.pipeline import EpisodePipeline, EpisodeRecorder, MineGenerator
from rllib_minestudio.foundation.names import POV
from rllib_minestudio.foundation.observations import IMAGE

__all__ = [
    "CameraConfig",
    "CommandsCallback",
    "EpisodeFilter",
    "EpisodePipeline",
    "EpisodeRecorder",
    "FastResetCallback",
    "GateRewardsCallback",
    "HardResetCallback",
    "InfoBaseFilter",
    "InitInventoryCallback",
    "JudgeResetCallback",
    "MaskActionsCallback",
    "MineGenerator",
    "MinecraftCallback",
    "MinecraftSim",
    "PrevActionCallback",
    "RecordCallback",
    "RewardsCallback",
    "SpeedTestCallback",
    "SummonMobsCallback",
    "TaskCallback",
    "VPTPolicy",
    "VoxelsCallback",
    "load_openai_policy",
    "load_vpt_policy",
    "start_rolloutmanager",
    "start_trainer",
]

_logger = logging.getLogger(__name__)


class MinecraftSim(MineStudioEnv):
    """`MineStudioEnv` with the constructor of MineStudio's `MinecraftSim` (simulator/entry.py).

    It uses the embedded engine unless `engine="minecraft"`. Differences from MineStudio: `pov` in
    `info` has the observation's size, an episode ends when the player dies, and seeds are passed
    to `reset`, as in gymnasium.
    """

    def __init__(
        self,
        action_type: str = "agent",
        obs_size: tuple[int, int] = (224, 224),
        render_size: tuple[int, int] = (640, 360),
        seed: int = 0,
        inventory: Mapping[int, Any] | None = None,
        preferred_spawn_biome: str | None = None,
        num_empty_frames: int = 20,
        callbacks: Sequence[Any] = (),
        camera_config: CameraConfig | Mapping[str, Any] | None = None,
        *,
        engine: str = "voxel",
        minecraft: Mapping[str, Any] | None = None,
        **ignored: Any,
    ) -> None:
        """Build the environment.

        Args:
            action_type: "agent" for VPT's tokens, "env" for keys and degrees.
            obs_size: (width, height) of observations.
            render_size: (width, height) of what `render` returns.
            seed: Seed of all episodes that `reset` does not seed.
            inventory: What the player starts with, slot -> stack.
            preferred_spawn_biome: Biome of the spawn point.
            num_empty_frames: Ticks without any action at the start of an episode.
            callbacks: MineStudio's callbacks, by their names in this package, or your own.
            camera_config: The camera's bins.
            engine: "voxel", or "minecraft" for the real game.
            minecraft: How the real game is launched.
            **ignored: Anything else, such as `timestep_limit`. MineStudio accepts and ignores it
                too; here a warning names it.

        Raises:
            InvalidOptionsError: Options are wrong; all problems are listed.
            EngineError: The engine is not available.
        """
        for name in ignored:
            _note_ignored(name)
        super().__init__(
            action_type=action_type,
            obs_size=obs_size,
            render_size=render_size,
            seed=seed,
            inventory=inventory,
            preferred_spawn_biome=preferred_spawn_biome,
            num_empty_frames=num_empty_frames,
            callbacks=callbacks,
            camera_config=camera_config,
            engine=engine,
            minecraft=minecraft,
            sampling="samples",  # MineStudio's scaling, with which published agents were trained
        )

    def _pass_on(self, obs: Obs, info: Info) -> tuple[Obs, Info]:
        passed, kept = super()._pass_on(obs, info)
        return passed, {**kept, POV: passed[IMAGE]}


@cache  # once per process
def _note_ignored(name: str) -> None:
    _logger.warning("MinecraftSim(%s=...) has no effect, nor has it in MineStudio.", name)


class VPTPolicy(Policy):
    """A policy with the methods of MineStudio's `VPTPolicy` that agents of its pipeline have.

    Attributes:
        source: What it was loaded from: a name, or a pair of files.
    """

    source: str | list[str]

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path: str, **options: Any) -> VPTPolicy:
        """Load published weights, or a checkpoint of this package.

        Args:
            pretrained_model_name_or_path: Anything that `Policy.load` accepts, such as the Hugging
                Face model "CraftJarvis/MineStudio_VPT.rl_from_early_game_2x".
            **options: Options of `Policy.load`: `deterministic`, `seed`, `device`.

        Raises:
            CheckpointMismatchError: There is no such policy.
        """
        policy = cls.load(pretrained_model_name_or_path, **options)
        assert isinstance(policy, cls)
        policy.source = pretrained_model_name_or_path
        return policy

    def to(self, device: str | torch.device) -> VPTPolicy:
        """Move the network to a device, and reset the memory."""
        self.module.to(device)
        self.reset()
        return self

    def eval(self) -> VPTPolicy:
        """Return the policy unchanged: it only ever acts."""
        return self

    def get_action(
        self,
        input: Mapping[str, Any],
        state_in: Any,
        deterministic: bool = False,
        input_shape: str = "*",
    ) -> tuple[dict[str, Any], Any]:
        """Return the action for one observation.

        Args:
            input: The observation, without leading axes.
            state_in: None at the start of an episode, otherwise the state that the previous call
                returned. The memory itself stays in the policy, so states cannot be swapped or
                kept.
            deterministic: Whether to take the most probable action.
            input_shape: Must be "*", as in MineStudio's pipeline.

        Returns:
            The tokens, and the state for the next call.

        Raises:
            InvalidBatchError: The observation does not fit the policy.
            ValueError: `input_shape` is not "*", or `state_in` is not the latest state.
        """
        if input_shape != "*":
            raise ValueError(
                f"input_shape is {input_shape!r}: only '*', one observation, is supported. Chunks "
                "go through the RLModule (docs/vpt.md)."
            )
        if state_in is None:
            self.reset()
        elif state_in is not self._latest:
            raise ValueError(
                "state_in is not what the previous call returned: the memory stays in the policy. "
                "Load one policy for each episode that is played at the same time."
            )
        action = self.act(input, deterministic=deterministic or None)
        self._latest = object()
        return action, self._latest

    _latest: Any = None


def load_vpt_policy(model_path: str, weights_path: str | None = None, **options: Any) -> VPTPolicy:
    """Load a policy, like MineStudio's function of this name.

    Args:
        model_path: A name or folder, or OpenAI's `.model` file.
        weights_path: OpenAI's `.weights` file, if `model_path` is a `.model` file.
        **options: Options of `Policy.load`.

    Raises:
        CheckpointMismatchError: There is no such policy.
    """
    if weights_path is None:
        return VPTPolicy.from_pretrained(model_path, **options)
    for path in (model_path, weights_path):
        if not Path(path).is_file():
            raise FileNotFoundError(f"There is no file {path!r}.")
    policy = VPTPolicy.load([model_path, weights_path], **options)
    assert isinstance(policy, VPTPolicy)
    policy.source = [model_path, weights_path]
    return policy


load_openai_policy = load_vpt_policy
"""The function's name in early versions of MineStudio."""
