"""Modules that have moved: their old import paths, which pickles and users' code may name.

RLlib's checkpoints pickle classes by the module they live in, so that what an earlier version
saved is read only if the old path still leads somewhere. CHANGELOG.md shows the same table.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

PACKAGE = "rllib_minestudio"

MOVED: dict[str, str] = {
    "algorithms.cloning.checks": "algorithms.cloning.cloning_checks",
    "algorithms.cloning.loss": "algorithms.learner.cloning_loss",
    "algorithms.env_pool.inline": "algorithms.env_pool.inline_envs",
    "algorithms.env_pool.options": "algorithms.options.env_pool",
    "algorithms.env_pool.process": "algorithms.env_pool.process_envs",
    "algorithms.env_pool.seat": "algorithms.env_pool.supervised_env",
    "algorithms.learner.state": "algorithms.learner.extra_state",
    "algorithms.rollout": "algorithms.rollout_report",
    "algorithms.training_loop.shelves": "algorithms.training_loop.bucket_queue",
    "algorithms.vpt_config": "algorithms.policy_config",
    "algorithms.vpt_learner": "algorithms.policy_learner",
    "cli.assignments": "experiments.reading.assignments",
    "cli.checkpoint": "cli.checkpoint_command",
    "cli.config_keys": "experiments.reading.config_keys",
    "cli.console": "console",
    "cli.doctor": "cli.doctor_command",
    "cli.engine": "cli.engine_command",
    "cli.environment": "experiments.running.environment",
    "cli.evaluate": "experiments.evaluate_checkpoint",
    "cli.evaluation_section": "experiments.reading.evaluation_section",
    "cli.experiment": "experiments.reading.experiment_file",
    "cli.health": "doctor.machine_checks",
    "cli.model": "cli.model_command",
    "cli.names": "experiments.reading.named_objects",
    "cli.numbers": "cli.argument_types",
    "cli.options": "experiments.reading.config_section",
    "cli.plan": "experiments.reading.tune_plan",
    "cli.play": "cli.play_command",
    "cli.progress": "experiments.outputs.progress",
    "cli.ray_session": "experiments.running.ray_session",
    "cli.record": "cli.record_command",
    "cli.resume": "experiments.running.resume",
    "cli.run": "experiments.running.tune_run",
    "cli.run_record": "experiments.running.run_record",
    "cli.scheduler": "experiments.reading.scheduler",
    "cli.search": "experiments.reading.search_space",
    "cli.sections": "experiments.reading.small_sections",
    "cli.starting_policy": "experiments.running.starting_policy",
    "cli.summary": "experiments.outputs.run_summary",
    "cli.train": "experiments.train",
    "cli.warmup": "cli.warmup_command",
    "env.backend": "env.backends.protocol",
    "env.checks": "option_checks",
    "env.minecraft": "env.backends.minecraft",
    "env.minecraft.backend": "env.backends.minecraft.backend",
    "env.minecraft.claims": "env.backends.minecraft.node_locks",
    "env.minecraft.commands": "env.backends.minecraft.commands",
    "env.minecraft.compat": "env.backends.minecraft.compat",
    "env.minecraft.connection": "env.backends.minecraft.connection",
    "env.minecraft.findings": "env.backends.minecraft.prerequisites",
    "env.minecraft.info": "env.backends.minecraft.info",
    "env.minecraft.items": "env.backends.minecraft.items",
    "env.minecraft.options": "env.backends.minecraft.launch_options",
    "env.minecraft.process": "env.backends.minecraft.process",
    "env.minecraft.session": "env.backends.minecraft.session",
    "env.options": "env.env_options",
    "env.voxel.accel": "env.voxel.world.box_field",
    "env.voxel.blocks": "env.voxel.world.blocks",
    "env.voxel.boxes": "env.voxel.observed_boxes",
    "env.voxel.building": "env.voxel.game.building",
    "env.voxel.combat": "env.voxel.player.combat",
    "env.voxel.consequences": "env.voxel.game.event_handlers",
    "env.voxel.controls": "env.voxel.player.controls",
    "env.voxel.drops": "env.voxel.entities.drops",
    "env.voxel.eating": "env.voxel.player.eating",
    "env.voxel.effects": "env.voxel.player.effects",
    "env.voxel.events": "env.voxel.entities.events",
    "env.voxel.falling": "env.voxel.game.falling",
    "env.voxel.foods": "env.voxel.items.foods",
    "env.voxel.hunger": "env.voxel.player.hunger",
    "env.voxel.inventory": "env.voxel.items.inventory",
    "env.voxel.jitcache": "env.voxel.kernel_cache",
    "env.voxel.locomotion": "env.voxel.player.locomotion",
    "env.voxel.loot": "env.voxel.game.loot",
    "env.voxel.mining": "env.voxel.player.mining",
    "env.voxel.mobs": "env.voxel.entities.mobs",
    "env.voxel.physics": "env.voxel.world.physics",
    "env.voxel.places": "env.voxel.game.spawning",
    "env.voxel.player_tick": "env.voxel.player.player_tick",
    "env.voxel.raycast": "env.voxel.player.raycast",
    "env.voxel.rehearsal": "env.voxel.warmup_game",
    "env.voxel.render.lanes": "env.voxel.render.ray_tiles",
    "env.voxel.renderer": "env.voxel.render.renderer",
    "env.voxel.state": "env.voxel.game.game_state",
    "env.voxel.statistics": "env.voxel.game.statistics",
    "env.voxel.surroundings": "env.voxel.game.surroundings",
    "env.voxel.tools": "env.voxel.items.tools",
    "env.voxel.worldgen": "env.voxel.world.worldgen",
    "evaluation.checkpoint": "evaluation.policy_loading",
    "evaluation.env": "evaluation.evaluation_env",
    "evaluation.options": "evaluation.evaluation_options",
    "evaluation.prior": "evaluation.reference_policy",
    "evaluation.rollout": "evaluation.policies",
    "evaluation.summary": "evaluation.evaluation_summary",
    "identity": "provenance",
    "machine_code": "compilation_cache",
    "models.vpt.arguments": "models.vpt.network_arguments",
    "models.vpt.checkpoint": "models.vpt.weight_loading",
    "models.vpt.fine_tuning": "models.fine_tuning",
    "models.vpt.frozen": "models.vpt.inference",
    "models.vpt.packed": "models.vpt.inference_layers",
    "models.vpt.rollout": "models.vpt.rollout_session",
    "models.vpt.shipped": "checkpoints.shipped",
    "models.vpt.state": "models.vpt.recurrent_state",
    "models.vpt.summary": "models.vpt.checkpoint_summary",
    "models.vpt.value_head": "models.value_head",
    "models.vpt.winograd.simd": "models.vpt.simd",
    "models.vpt.winograd.team": "models.vpt.team",
    "models.vpt_rl_module_batch": "models.recurrent_batch",
    "runs": "experiments",
    "runs.checkpoints": "experiments.outputs.trial_checkpoints",
    "runs.full_disk": "experiments.running.full_disk",
    "runs.history": "experiments.outputs.training_history",
    "runs.resources": "experiments.running.resources",
    "runs.results": "experiments.outputs.result_metrics",
    "runs.resume": "experiments.running.tune_state",
    "runs.tensorboard": "experiments.outputs.tensorboard",
    "runs.trackers": "experiments.outputs.trackers",
    "runs.videos": "experiments.outputs.videos",
    "runs.wandb": "experiments.outputs.wandb",
}
"""Old path to new path, both below the package, dotted."""


class _FormerPath(MetaPathFinder, Loader):
    """Finds a moved module under its old path, and gives the one module that there is."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package, _, old = fullname.partition(".")
        return ModuleSpec(fullname, self) if package == PACKAGE and old in MOVED else None

    def exec_module(self, module: ModuleType) -> None:
        old = module.__name__
        new = f"{PACKAGE}.{MOVED[old.removeprefix(f'{PACKAGE}.')]}"
        warnings.warn(f"{old} is now {new}", DeprecationWarning, stacklevel=2)
        sys.modules[old] = import_module(new)


def install() -> None:
    """Let Python find moved modules under their old paths, before it looks for files."""
    if not any(isinstance(finder, _FormerPath) for finder in sys.meta_path):
        sys.meta_path.insert(0, _FormerPath())
