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
    "cli.assignments": "experiments.reading.assignments",
    "cli.checkpoint": "cli.checkpoint_command",
    "cli.config_keys": "experiments.reading.config_keys",
    "cli.console": "console",
    "cli.doctor": "cli.doctor_command",
    "cli.engine": "cli.engine_command",
    "cli.environment": "experiments.running.environment",
    "cli.evaluation_section": "experiments.reading.evaluation_section",
    "cli.evaluate": "experiments.evaluate_checkpoint",
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
    "identity": "provenance",
    "machine_code": "compilation_cache",
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
