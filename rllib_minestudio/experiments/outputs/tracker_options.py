"""The options of the trackers that have any."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args, get_origin, get_type_hints

from rllib_minestudio.option_checks import broken_rule, unknown_name

WANDB_MODES = ("online", "offline", "disabled")

_KINDS = {str: "a text", list: "a list", dict: "a mapping", bool: "true or false"}


@dataclass(frozen=True)
class WandbOptions:
    """How a run appears at Weights & Biases.

    Attributes:
        project: The project the run belongs to; without it, the environment variable
            `WANDB_PROJECT` must name one.
        name: Name of the run; in a search, each trial's id is appended. None takes the trial's
            name.
        group: Name of the group of runs it is shown in; None takes the name of the run's folder.
        entity: The user or team that owns the project; None takes W&B's own default.
        mode: `online`, `offline` (upload later with `wandb sync`) or `disabled`; without it, what
            the environment variable `WANDB_MODE` says.
        tags: Labels to filter runs by.
        notes: A remark for the run's page.
        job_type: A label that tells training from evaluation within a group.
        upload_checkpoints: Whether checkpoints are uploaded as artifacts.
    """

    project: str | None = None
    name: str | None = None
    group: str | None = None
    entity: str | None = None
    mode: str = "online"
    tags: list | None = None
    notes: str | None = None
    job_type: str | None = None
    upload_checkpoints: bool = False


@dataclass(frozen=True)
class MlflowOptions:
    """Where MLflow keeps a run.

    Attributes:
        tracking_uri: A server (`http://localhost:5000`) or a database
            (`sqlite:////home/me/mlflow.db`); without it, the environment variable
            `MLFLOW_TRACKING_URI` names one.
        registry_uri: Where registered models are kept, if not there.
        experiment_name: The experiment the run belongs to; without it, the environment variable
            `MLFLOW_EXPERIMENT_NAME` must name one.
        tags: Label -> value, to filter runs by.
        save_artifact: Whether the trial's folder is uploaded when it ends.
    """

    tracking_uri: str | None = None
    registry_uri: str | None = None
    experiment_name: str | None = None
    tags: dict | None = None
    save_artifact: bool = False


def option_problems(options: Mapping[str, Any], declared: type, path: str) -> list[str]:
    """Return one sentence per option that does not exist or is of the wrong kind.

    Args:
        options: As the user wrote them.
        declared: `WandbOptions` or `MlflowOptions`.
        path: Their section, for messages.
    """
    kinds = {name: _kind(hint) for name, hint in get_type_hints(declared).items()}
    problems = []
    for key, value in options.items():
        if key not in kinds:
            problems.append(unknown_name("key", key, sorted(kinds), path))
        elif not isinstance(value, kinds[key]):
            problems.append(broken_rule(f"{path}.{key}", value, f"must be {_KINDS[kinds[key]]}"))
    return problems


def _kind(hint: Any) -> type:
    """Return the class that values have which are not null."""
    (kind,) = (kind for kind in get_args(hint) or (hint,) if kind is not type(None))
    return get_origin(kind) or kind
