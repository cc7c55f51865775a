"""The policies that come with the package, by name, and those of users, by import path."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rllib_minestudio.checkpoints import Checkpoint
from rllib_minestudio.checkpoints.checkpoint import NETWORK, VPT
from rllib_minestudio.checkpoints.trust import refuse_untrusted
from rllib_minestudio.errors import CheckpointMismatchError, InvalidOptionsError, did_you_mean
from rllib_minestudio.foundation.options import LONGEST_PATH, broken_rule, is_import_path, shown
from rllib_minestudio.models.policy import RecurrentRLModule
from rllib_minestudio.models.vpt.weights import count_numbers, dtypes

AUTO = "auto"
"""Instead of a policy's name: the environment decides (`environments.default_policy`)."""

CONV_GRU = "ConvGRU"

POLICIES = {
    VPT: "rllib_minestudio.models.rl_modules.VPTRLModule",
    CONV_GRU: "rllib_minestudio.models.rl_modules.ConvGRURLModule",
}
"""Name to import path."""


def find_policy(given: Any) -> type[RecurrentRLModule]:
    """Return the policy class for a name, an import path, or the class itself.

    Raises:
        InvalidOptionsError: There is none, or it is not a concrete `RecurrentRLModule`.
    """
    rule = (
        f"must be {', '.join(map(repr, (AUTO, *POLICIES)))}, or a subclass of RecurrentRLModule or "
        "its import path, such as my_package.my_module.MyPolicy (docs/policies.md)"
    )
    found = given
    if isinstance(given, str):
        path = POLICIES.get(given, given)
        if not is_import_path(path):
            hint = did_you_mean(given[:LONGEST_PATH], POLICIES)
            raise InvalidOptionsError(broken_rule("module_class", given, rule) + hint)
        found = _imported(path)
    # Nothing that a file names is called unless it is such a class.
    if not isinstance(found, type) or not issubclass(found, RecurrentRLModule):
        raise InvalidOptionsError(broken_rule("module_class", given, rule))
    if inspect.isabstract(found):
        missing = ", ".join(sorted(found.__abstractmethods__))
        rule = f"must be a complete policy, but lacks {missing} (docs/policies.md)"
        raise InvalidOptionsError(broken_rule("module_class", given, rule))
    return found


def policy_of_checkpoint(checkpoint: Checkpoint) -> type[RecurrentRLModule]:
    """Return the class that a checkpoint names; VPT's if it names none.

    Raises:
        CheckpointMismatchError: There is none, or it is not a concrete `RecurrentRLModule`.
        UntrustedError: It is none of this package's, and the checkpoint is from elsewhere.
    """
    refuse_untrusted(checkpoint.name, [] if checkpoint.trusted else class_requests(checkpoint))
    try:
        return find_policy(checkpoint.policy_class or VPT)
    except InvalidOptionsError as error:
        raise CheckpointMismatchError(
            f"{checkpoint.name!r} cannot be loaded: its {error}"
        ) from error


def class_requests(checkpoint: Checkpoint) -> list[str]:
    """Return what a checkpoint's class asks for beyond data, in words: one phrase, or none."""
    name = checkpoint.policy_class or VPT
    if name in POLICIES or name in POLICIES.values():
        return []
    return [f"{NETWORK}: the policy {shown(name)} (a class to import and run)"]


def _imported(path: str) -> Any:
    """Return what an import path names.

    Raises:
        InvalidOptionsError: It cannot be imported; the message says why.
    """
    module, _, name = path.replace(":", ".").rpartition(".")
    try:
        return getattr(importlib.import_module(module), name)
    # The user's module may raise anything.
    except (Exception, SystemExit) as error:
        is_plain = isinstance(error, ModuleNotFoundError | AttributeError)
        reason = str(error) if is_plain else f"{type(error).__name__}: {error}"
        is_missing = isinstance(error, ModuleNotFoundError)
        way_out = ": install it, or put the folder that contains it on PYTHONPATH"
        raise InvalidOptionsError(
            f"module_class is {path!r}, which cannot be imported ({reason})"
            f"{way_out if is_missing else ''}."
        ) from error


def name_of_policy(policy: type) -> str | None:
    """Return the name or import path by which `find_policy` finds a class; None without one."""
    path = f"{policy.__module__}.{policy.__qualname__}"
    for name, known in POLICIES.items():
        if path == known:
            return name
    try:
        return path if find_policy(path) is policy and policy.__module__ != "__main__" else None
    except InvalidOptionsError:
        return None


def class_problems(policy: type[RecurrentRLModule], checkpoint: Checkpoint) -> list[str]:
    """Report whether a checkpoint is of another class, without needing spaces or tensors.

    Args:
        policy: The class to load it into; checkpoints of its base classes may fit.
        checkpoint: What the option `weights` names.

    Returns:
        One sentence, or none; also none if the checkpoint does not name its class.
    """
    found = checkpoint.policy_class
    if found is None or found in map(name_of_policy, policy.__mro__):
        return []
    return [
        f"weights {checkpoint.name!r} are of the policy {found}, not of {policy.__name__}: give a "
        f"checkpoint of the latter, or set module_class to {found!r}."
    ]


# ----------------- what a checkpoint of a policy that is not VPT holds, without importing its class


@dataclass(frozen=True)
class PolicySummary:
    """A checkpoint in numbers."""

    form: str
    """One of the forms in `checkpoints/checkpoint.py`."""

    weights: Path
    """The file with the tensors."""

    policy: str
    """The class: a name or import path."""

    options: Mapping[str, Any]
    """Its `model_config`."""

    tensors: int
    """The number of tensors."""

    parameters: int
    """The number of values in the tensors."""

    dtype: str
    """The stored dtypes of these values, separated by commas."""


def summarize_other(checkpoint: Checkpoint) -> PolicySummary | None:
    """Summarise a checkpoint; return None if its policy is VPT.

    Raises:
        CheckpointMismatchError: It cannot be read.
    """
    if checkpoint.other_policy is None:
        return None
    policy, options = checkpoint.other_policy
    tensors = checkpoint.tensors()
    return PolicySummary(
        form=checkpoint.form,
        weights=checkpoint.weights,
        policy=policy,
        options=options,
        tensors=len(tensors),
        parameters=count_numbers(tensors),
        dtype=dtypes(tensors),
    )
