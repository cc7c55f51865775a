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
    "algorithms.cloning.loss": "algorithms.learner.cloning_loss",
    "algorithms.cloning.checks": "algorithms.cloning.cloning_checks",
    "algorithms.learner.state": "algorithms.learner.extra_state",
    "evaluation.checkpoint": "evaluation.policy_loading",
    "evaluation.env": "evaluation.evaluation_env",
    "evaluation.options": "evaluation.evaluation_options",
    "evaluation.prior": "evaluation.reference_policy",
    "evaluation.rollout": "evaluation.policies",
    "evaluation.summary": "evaluation.evaluation_summary",
    "models.vpt.arguments": "models.vpt.network_arguments",
    "models.vpt.checkpoint": "models.vpt.weight_loading",
    "models.vpt.frozen": "models.vpt.inference",
    "models.vpt.packed": "models.vpt.inference_layers",
    "models.vpt.rollout": "models.vpt.rollout_session",
    "models.vpt.state": "models.vpt.recurrent_state",
    "models.vpt.summary": "models.vpt.checkpoint_summary",
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
