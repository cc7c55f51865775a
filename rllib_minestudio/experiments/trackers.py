"""The section `trackers`: logging to TensorBoard, Weights & Biases, and MLflow.

    trackers:
      tensorboard: true                 # the default
      wandb: {project: cows, group: lr, name: first, mode: offline}
      mlflow: {tracking_uri: http://localhost:5000, experiment_name: cows}

Everything is validated before a run starts: names, types, whether the package is installed, and,
for W&B, whether this machine is logged in.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, get_args, get_origin, get_type_hints
from urllib.parse import unquote, urlsplit

from packaging.version import Version
from ray.tune.logger import CSVLoggerCallback, JsonLoggerCallback, LoggerCallback

from rllib_minestudio.foundation.options import broken_rule, not_a_choice, unknown_name

TRACKERS = ("tensorboard", "wandb", "mlflow")

FIRST_WITHOUT_FOLDERS = Version("3.13.0rc0")
"""First MLflow version that refuses `file:///...` and plain paths at first use."""

CONNECT_SECONDS = 5.0
"""How long a tracker's server may take to accept a connection."""

ALLOW_FOLDERS = "MLFLOW_ALLOW_FILE_STORE"
"""MLflow's environment variable that still allows it to write to a folder."""


def tracker_problems(options: Mapping[str, Any], path: str) -> list[str]:
    """Return one sentence per problem of a `trackers` section.

    Args:
        options: The section.
        path: Its dotted path, for messages.
    """
    problems = []
    for name, value in options.items():
        if name not in TRACKERS:
            problems.append(unknown_name("tracker", name, TRACKERS, path))
        elif name == "tensorboard":
            if not isinstance(value, bool):
                problems.append(broken_rule(f"{path}.tensorboard", value, "must be true or false"))
        elif not isinstance(value, Mapping):
            problems.append(broken_rule(f"{path}.{name}", value, "must be a mapping"))
        elif name == "wandb":
            problems += _wandb_problems(value, f"{path}.wandb")
        else:
            problems += _mlflow_problems(value, f"{path}.mlflow")
    return problems


def _wandb_problems(options: Mapping[str, Any], path: str) -> list[str]:
    problems = option_problems(options, WandbOptions, path)
    mode = options.get("mode", "online")
    if isinstance(mode, str) and mode not in WANDB_MODES:
        problems.append(not_a_choice(f"{path}.mode", mode, WANDB_MODES))
    if not options.get("project") and not os.environ.get("WANDB_PROJECT"):
        problems.append(f"{path}.project: is missing; name the W&B project the run belongs to.")
    if find_spec("wandb") is None:
        problems.append(f"{path}: wandb is not installed; pip install 'rllib_minestudio[wandb]'")
    if not problems and not _is_offline(options) and not _is_logged_in():
        problems.append(
            f"{path}: this machine is not logged in to Weights & Biases. Run `wandb login`, set "
            "WANDB_API_KEY, or set mode: offline and upload later with `wandb sync`."
        )
    if not problems and not _is_offline(options):
        host = os.environ.get("WANDB_BASE_URL", "https://api.wandb.ai")
        if reason := _unreachable(host):
            problems.append(
                f"{path}: nothing answers at {host} ({reason}). Set mode: offline, and upload "
                "later with `wandb sync`."
            )
    return problems


def _is_offline(options: Mapping[str, Any]) -> bool:
    mode = options.get("mode", os.environ.get("WANDB_MODE", "online"))
    return mode in ("offline", "disabled")


def _is_logged_in() -> bool:
    """Return whether W&B's key is found where Ray and wandb look for it, without a prompt."""
    if os.environ.get("WANDB_API_KEY"):
        return True
    import wandb

    return bool(wandb.login(prompt=False, verify=False))


def _mlflow_problems(options: Mapping[str, Any], path: str) -> list[str]:
    problems = option_problems(options, MlflowOptions, path)
    if find_spec("mlflow") is None:
        problems.append(f"{path}: mlflow is not installed; pip install mlflow")
    if not problems and os.environ.get(ALLOW_FOLDERS, "").lower() not in ("true", "1"):
        problems += _folder_problems(options, path)
    uri = options.get("tracking_uri") or os.environ.get("MLFLOW_TRACKING_URI", "")
    if not problems and (reason := _unreachable(uri)):
        problems.append(
            f"{path}.tracking_uri: nothing answers at {uri!r} ({reason}). Start the server, "
            "correct the address, or use a database: sqlite:////home/me/mlflow.db"
        )
    return problems


def _unreachable(uri: str) -> str:
    """Return why nobody answers at the address of a server; "" if somebody does, or it is none.

    A tracker that cannot reach its server tries again for minutes, silently, after Ray has started.
    """
    parts = urlsplit(uri)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return ""
    try:
        port = parts.port or (443 if parts.scheme == "https" else 80)
        with socket.create_connection((parts.hostname, port), timeout=CONNECT_SECONDS):
            return ""
    except (OSError, ValueError, OverflowError) as error:
        return str(getattr(error, "strerror", None) or error)


def _folder_problems(options: Mapping[str, Any], path: str) -> list[str]:
    """Return problems of folders where this MLflow version needs a database or a server."""
    import mlflow

    if Version(mlflow.__version__) < FIRST_WITHOUT_FOLDERS:
        return []
    problems = []
    for name in ("tracking_uri", "registry_uri"):
        uri = options.get(name) or os.environ.get(f"MLFLOW_{name.upper()}", "")
        if not uri.startswith("file:") and ("/" not in uri or "://" in uri):
            continue
        folder = os.path.abspath(unquote(urlsplit(uri).path))
        rule = (
            f"must be a database or a server, since MLflow {mlflow.__version__} writes to no folder"
        )
        problem = broken_rule(f"{path}.{name}", uri, rule)
        way_out = f"Write sqlite:///{folder}/mlflow.db, or set {ALLOW_FOLDERS}=true."
        problems.append(f"{problem} {way_out}")
    return problems


def logger_callbacks(
    options: Mapping[str, Any], identity: Mapping[str, Any], many_trials: bool
) -> list[LoggerCallback]:
    """Build a run's loggers, always including Tune's CSV and JSON loggers, which resuming reads.

    Call this before Ray starts: it sets environment variables that keep Tune from adding other
    loggers, and that pass W&B its mode.

    Args:
        options: The validated `trackers` section.
        identity: Versions and code, stored with each W&B run's config.
        many_trials: Whether the run has several trials, whose names must differ.
    """
    os.environ["TUNE_DISABLE_AUTO_CALLBACK_LOGGERS"] = "1"
    loggers: list[LoggerCallback] = [CSVLoggerCallback(), JsonLoggerCallback()]
    if options.get("tensorboard", True):
        from rllib_minestudio.experiments.tracker_loggers import TensorBoard

        loggers.append(TensorBoard())
    if "wandb" in options:
        from rllib_minestudio.experiments.tracker_loggers import WeightsAndBiases

        loggers.append(WeightsAndBiases(options["wandb"], identity, many_trials))
    if "mlflow" in options:
        from ray.air.integrations.mlflow import MLflowLoggerCallback

        loggers.append(MLflowLoggerCallback(**options["mlflow"]))
    return loggers


# ------------------------------------------------------------------------ options of W&B and MLflow

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
    """Return one sentence per option that does not exist or has the wrong type.

    Args:
        options: The user's options.
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
    """Return the class of values other than None."""
    (kind,) = (kind for kind in get_args(hint) or (hint,) if kind is not type(None))
    return get_origin(kind) or kind
