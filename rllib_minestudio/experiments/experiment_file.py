"""Reading of experiment files, with the command line's overrides applied.

A YAML file holds one or more experiments in RLlib's classic layout:

    cow:                                  # name of the results folder
      run: MineStudioPPO
      env: MineStudioEnv
      stop: {time_total_s: 800}
      num_samples: 1
      scheduler: {asha: {grace_period: 20000, max_t: 100000}}
      checkpoint_config: {save_interval: 10, keep_interval: 100}
      record_video_interval: 100
      trackers: {wandb: {project: cows}}
      summary: {random_policy_episodes: 20, video_episodes: 1}
      config: {lr: 1e-4, env_config: {...}}

A Python file defines `config` (an AlgorithmConfig), and optionally the other keys above; or a
complete `tuner` (ray.tune.Tuner).

This module reads, merges, and checks the layout. Options and values are validated in `plan`.
"""

from __future__ import annotations

import importlib.util
import os
import runpy
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import ScalarNode, YAMLError

from rllib_minestudio.algorithms.options import INITIAL_PRIOR
from rllib_minestudio.checkpoints.lookup import pinned
from rllib_minestudio.errors import ExperimentFileError, InvalidOptionsError, did_you_mean
from rllib_minestudio.foundation.files import (
    SmallFileError,
    check_interpolations,
    check_yaml,
    read_text,
)
from rllib_minestudio.foundation.options import broken_rule, shown, unknown_name

DEFAULT_ALGORITHM = "MineStudioPPO"

TUNES_SAVE_INTERVAL = "checkpoint_frequency"
"""Tune's name for `checkpoint_config.save_interval` (MineStudio's name); both are accepted."""

RLLIB_KEYS = {
    "checkpoint_at_end": "checkpoint_config.checkpoint_at_end",
    "checkpoint_freq": "checkpoint_config.save_interval",
    "keep_checkpoints_num": "checkpoint_config.num_to_keep",
    "local_dir": "the command line's --out",
    "restore": "the command line's --resume",
    "storage_path": "the command line's --out",
}
"""Keys of RLlib's own experiment files -> their equivalents here."""


@dataclass
class Experiment:
    """An experiment as written in its file.

    Attributes:
        name: Name of its results folder.
        run: The algorithm's name, or the dotted path of an Algorithm class.
        env: The environment's name or dotted path; None leaves the algorithm's default.
        stop: Metric name -> value at which training stops; the first one reached ends it.
        config: The algorithm's options; any value may be a search space.
        num_samples: How often Tune repeats the search space.
        scheduler: Which trials of a search are stopped early: `asha` or `median_stopping_rule`,
            with the arguments of Tune's class.
        checkpoint_config: Which checkpoints are kept; its keys are fields of `CheckpointOptions`.
        record_video_interval: Iterations between videos of the agent; None records none.
        trackers: Further destinations of results: TensorBoard, W&B, MLflow.
        evaluation: How the agent is evaluated during training (`sections.py`).
        summary: What is measured before and after the run; its keys are fields of `SummaryOptions`.
        algorithm_config: The AlgorithmConfig object of a Python file; `config` then contains only
            what the command line sets on top of it.
    """

    name: str
    run: str = DEFAULT_ALGORITHM
    env: str | None = None
    stop: dict[str, Any] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)
    num_samples: int = 1
    scheduler: dict[str, Any] = field(default_factory=dict)
    checkpoint_config: dict[str, Any] = field(default_factory=dict)
    record_video_interval: int | None = None
    trackers: dict[str, Any] = field(default_factory=dict)
    evaluation: dict[str, Any] = field(default_factory=dict)
    summary: dict[str, Any] = field(default_factory=dict)
    algorithm_config: Any = None


SECTIONS = (
    *("stop", "config", "checkpoint_config", "trackers", "evaluation", "summary"),
    "scheduler",
)
"""Keys of an experiment whose values are mappings."""

EXPERIMENT_KEYS = ("run", "env", "num_samples", "record_video_interval", *SECTIONS)


def load_experiments(path: Path, overrides: Sequence[str] = ()) -> list[Experiment]:
    """Read an experiment file and apply `--set` overrides.

    Args:
        path: A `.yaml`, `.yml` or `.py` file; if it does not exist, the bare name of an example in
            the package (`cow`).
        overrides: `key=value` strings. A key is a dotted path below `config`
            (`lr=3e-5`, `model.hidsize=64`), or starts with one of the experiment's own keys
            (`config.lr=3e-5`, `checkpoint_config.num_to_keep=2`). Values are YAML.

    Returns:
        The file's experiments, in order.

    Raises:
        ExperimentFileError: The file is missing, not readable as YAML, or empty.
        InvalidOptionsError: The file has the wrong layout, or an override cannot be applied.
    """
    if not path.is_file():
        example = packaged_example(path)
        if example is None:
            raise ExperimentFileError(_no_such_file(path))
        path = example
    if path.suffix == ".py":
        return [_read_python(path, overrides)]
    if path.suffix in (".yaml", ".yml"):
        return _read_yaml(path, overrides)
    raise ExperimentFileError(f"{path}: an experiment file ends in .yaml, .yml or .py.")


def load_tuner(path: Path) -> Any | None:
    """Return the `tuner` that a Python file defines, or None."""
    if path.suffix != ".py" or not path.is_file():
        return None
    return _run_python(path).get("tuner")


def _read_yaml(path: Path, overrides: Sequence[str]) -> list[Experiment]:
    try:
        root = check_yaml(text := read_text(path))
        check_interpolations(text)
        if isinstance(root, ScalarNode):
            raise ExperimentFileError(f"{path} holds a single value, no experiments.")
        experiments = OmegaConf.to_container(OmegaConf.create(text), resolve=True)
    except (YAMLError, OmegaConfBaseException, OSError, ValueError, RecursionError) as error:
        reason = str(error).strip() or type(error).__name__
        raise ExperimentFileError(f"{path} is not readable as YAML: {reason}") from error
    if not isinstance(experiments, dict) or not experiments:
        raise ExperimentFileError(
            f"{path}: expected `name: {{run: ..., env: ..., stop: ..., config: ...}}`, "
            f"found {'nothing' if not experiments else type(experiments).__name__}."
        )
    problems = [
        problem for name, body in experiments.items() for problem in _layout_problems(name, body)
    ]
    if problems:
        raise InvalidOptionsError(problems)
    return [
        Experiment(name=str(name), **with_overrides(body, overrides))
        for name, body in experiments.items()
    ]


def _layout_problems(name: Any, body: Any) -> list[str]:
    """Return the problems of an experiment's name, keys, and section types."""
    if problem := _name_problem(str(name)):
        return [problem]
    if not isinstance(body, Mapping):
        hint = " The experiment's name is missing above it." if str(name) in EXPERIMENT_KEYS else ""
        return [f"{name}: an experiment is a mapping with keys {', '.join(EXPERIMENT_KEYS)}.{hint}"]
    problems = []
    for key, value in body.items():
        if key in RLLIB_KEYS:
            problems.append(f"{name}.{key}: is RLlib's name of it; use {RLLIB_KEYS[key]}.")
        elif key not in EXPERIMENT_KEYS:
            problems.append(unknown_name("key", key, EXPERIMENT_KEYS, str(name)))
        elif key in SECTIONS and not isinstance(value, Mapping | None):
            problems.append(broken_rule(f"{name}.{key}", value, "must be a mapping"))
        elif key in ("run", "env") and not isinstance(value, str if key == "run" else str | None):
            problems.append(broken_rule(f"{name}.{key}", value, "must be a name"))
    return problems


def _name_problem(name: str) -> str | None:
    """Return why a name cannot be the name of a results folder; None if it can."""
    is_plain = name.isprintable() and not {"/", "\\", "\0"} & set(name)
    if is_plain and name.strip() == name and name not in ("", ".", "..") and len(name) <= 100:
        return None
    return (
        f"{name[:100]!r}: an experiment's name is the name of a folder in the results: at most "
        "100 printable characters, no slash, and not `.` or `..`."
    )


def with_overrides(body: Mapping[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    """Merge `--set key=value` into an experiment; null sections become empty."""
    check_assignments(overrides, "--set")
    merged = OmegaConf.create(_with_empty_sections(body))
    for override in overrides:
        try:
            _make_room(merged, rooted(override))
            merged.merge_with_dotlist([rooted(override)])
        except (
            YAMLError,
            OmegaConfBaseException,
            ValueError,
            TypeError,
            LookupError,
            AttributeError,
            RecursionError,
        ) as error:
            raise InvalidOptionsError(
                f"--set {override}: cannot be applied: {first_line(error)}."
            ) from error
    try:
        container = OmegaConf.to_container(merged, resolve=True)
    except (OmegaConfBaseException, ValueError, RecursionError) as error:
        raise InvalidOptionsError(f"--set: cannot be applied: {first_line(error)}.") from error
    assert isinstance(container, dict)
    # Check again: an override may have replaced a section.
    problems = _layout_problems("--set", container)
    if problems:
        raise InvalidOptionsError(problems)
    return _with_empty_sections(container)


def _with_empty_sections(body: Mapping[Any, Any]) -> dict[str, Any]:
    return {
        str(key): {} if key in SECTIONS and value is None else value for key, value in body.items()
    }


def _make_room(merged: Any, override: str) -> None:
    """Clear lists and elements of lists to be replaced, where OmegaConf would merge or refuse."""
    path, _, value = override.partition("=")
    parent, _, last = path.replace("[", ".").replace("]", "").rpartition(".")
    present = OmegaConf.select(merged, path)
    is_element = last.isdigit() and OmegaConf.is_list(OmegaConf.select(merged, parent))
    becomes_list = OmegaConf.is_dict(present) and value.lstrip().startswith("[")
    if is_element or OmegaConf.is_list(present) or becomes_list:
        OmegaConf.update(merged, path, None)


def rooted(override: str) -> str:
    """Return `key=value` with its full path; keys that no experiment has belong to `config`."""
    first = override.partition("=")[0].partition(".")[0].partition("[")[0]
    return override if first in EXPERIMENT_KEYS else f"config.{override}"


def _read_python(path: Path, overrides: Sequence[str]) -> Experiment:
    namespace = _run_python(path)
    config = namespace.get("config")
    if not hasattr(config, "algo_class"):
        raise ExperimentFileError(
            f"{path}: must define `config`, an AlgorithmConfig such as MineStudioPPOConfig(), "
            f"or `tuner`, a ray.tune.Tuner; found {type(config).__name__} for `config`."
        )
    body: dict[str, Any] = {
        key: namespace[key]
        for key in EXPERIMENT_KEYS
        if key in namespace and key not in ("run", "env", "config")
    }
    problems = _layout_problems(path.stem, body)
    if problems:
        raise InvalidOptionsError(problems)
    merged = with_overrides(body, overrides)
    if "run" in merged:
        raise InvalidOptionsError("--set run: a Python file's `config` decides the algorithm.")
    return Experiment(name=path.stem, algorithm_config=config, **merged)


def _run_python(path: Path) -> dict[str, Any]:
    try:
        return runpy.run_path(str(path), run_name="__rllib_train__")
    except (Exception, SystemExit) as error:
        raise ExperimentFileError(
            f"{path}: running it raised {type(error).__name__}: {error}"
        ) from error


def _no_such_file(path: Path) -> str:
    """Return the message for a missing file, with a suggestion of a similar name."""
    if path.is_dir():
        return (
            f"{str(path)!r} is a folder, not an experiment file. If it is a checkpoint: "
            "`rllib evaluate CHECKPOINT`, or `rllib play TASK --agent CHECKPOINT`."
        )
    folder = path.parent
    neighbours = [entry.name for entry in folder.iterdir()] if folder.is_dir() else []
    hint = did_you_mean(path.name, [*neighbours, *packaged_names(), *minestudio_config_names()])
    return f"There is no experiment file {shown(str(path))}.{hint}"


# ---------------------------------------------------- `key=value` arguments of `--set` and `--stop`


def parse_assignments(assignments: Sequence[str], option: str) -> dict[str, Any]:
    """Parse `key=value` strings into a flat mapping; values are YAML, and `1e-5` is a number.

    Args:
        assignments: The arguments of the option.
        option: Name of the command-line option, for messages.

    Raises:
        InvalidOptionsError: A string has no `=`, or its value is not YAML.
    """
    check_assignments(assignments, option)
    parsed: dict[str, Any] = {}
    for assignment in assignments:
        key, _, text = assignment.partition("=")
        try:
            parsed[key] = OmegaConf.to_container(OmegaConf.from_dotlist([f"value={text}"]))["value"]  # type: ignore[call-overload,index]
        except (YAMLError, OmegaConfBaseException, ValueError, RecursionError) as error:
            raise InvalidOptionsError(f"{option} {assignment}: the value is not YAML.") from error
    return parsed


def check_assignments(assignments: Sequence[str], option: str) -> None:
    """Refuse strings that are not `key=value`, and values that expand far beyond their text.

    Args:
        assignments: The arguments of the option.
        option: Name of the command-line option, for messages.

    Raises:
        InvalidOptionsError: A string has no `=`, or its value is not YAML or too large.
    """
    broken = [text for text in assignments if not text.partition("=")[0] or "=" not in text]
    if broken:
        raise InvalidOptionsError(
            [f"{option} {text}: must be written key=value, such as lr=1e-5." for text in broken]
        )
    for assignment in assignments:
        _check_value(assignment, option)


def _check_value(assignment: str, option: str) -> None:
    """Refuse a value that is not YAML or expands far beyond its text.

    Raises:
        InvalidOptionsError: The value is refused.
    """
    try:
        check_yaml(text := assignment.partition("=")[2])
        check_interpolations(text)
    except (YAMLError, SmallFileError) as error:
        raise InvalidOptionsError(
            f"{option} {assignment[:200]}: the value is not YAML: {first_line(error)}."
        ) from error


def first_line(error: Exception) -> str:
    """Return the first line of an error's message, without the final full stop."""
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")


def value_at(config: Any, path: Sequence[Any]) -> Any:
    """Return the value at a path in a trial's config."""
    for key in path:
        config = config[key]
    return config


# ------------------------------------------------------ example files in the package, found by name
# In a checkout they are in `tuned_examples`, next to the package; an installed package contains
# that folder (see setup.py).

_PACKAGE = Path(__file__).parents[1]
_INSTALLED = _PACKAGE / "tuned_examples"
EXAMPLES = _INSTALLED if _INSTALLED.is_dir() else _PACKAGE.parent / "tuned_examples"

_SUFFIX = ".yaml"


def packaged_names() -> list[str]:
    """Return the names of all examples, such as `cow`."""
    return sorted(path.stem for path in EXAMPLES.glob(f"*{_SUFFIX}"))


def packaged_example(path: Path) -> Path | None:
    """Return the example that a bare name refers to, with or without `.yaml`, or None.

    Args:
        path: The user's path; a path with a folder is never a bare name.
    """
    if path.name != str(path) or path.suffix not in ("", _SUFFIX):
        return None
    return EXAMPLES / f"{path.stem}{_SUFFIX}" if path.stem in packaged_names() else None


# -------------------------------------------------------- MineStudio's options, by their names here
# `rllib convert` translates with this table, and error messages suggest the name here for a key of
# MineStudio's.

RENAMED = {
    "rollout_config.num_rollout_workers": "config.num_env_runners",
    "rollout_config.num_gpus_per_worker": "config.num_gpus_per_env_runner",
    "rollout_config.num_cpus_per_worker": "config.num_cpus_per_env_runner",
    "rollout_config.fragment_length": "config.rollout_fragment_length",
    "rollout_config.worker_config.num_envs": "config.num_envs_per_env_runner",
    "rollout_config.worker_config.batch_size": "config.env_pool.inference_batch_size",
    "rollout_config.worker_config.restart_interval": "config.env_pool.restart_interval",
    "rollout_config.replay_buffer_config.max_reuse": "config.replay_buffer.max_reuse",
    "rollout_config.replay_buffer_config.max_staleness": "config.replay_buffer.max_staleness",
    "rollout_config.replay_buffer_config.fragments_per_chunk": (
        "config.replay_buffer.fragments_per_chunk"
    ),
    "train_config.num_workers": "config.num_learners",
    "train_config.num_gpus_per_worker": "config.num_gpus_per_learner",
    "train_config.num_cpus_per_worker": "config.num_cpus_per_learner",
    "train_config.num_iterations": "stop.training_iteration",
    "train_config.vf_warmup": "config.vf_warmup_iterations",
    "train_config.learning_rate": "config.lr",
    "train_config.weight_decay": "config.weight_decay",
    "train_config.adam_eps": "config.adam_eps",
    "train_config.batch_size_per_gpu": "config.fragments_per_minibatch",
    "train_config.epochs_per_iteration": "config.num_epochs",
    "train_config.context_length": "config.context_length",
    "train_config.discount": "config.gamma",
    "train_config.gae_lambda": "config.lambda_",
    "train_config.ppo_clip": "config.clip_param",
    "train_config.max_grad_norm": "config.grad_clip",
    "train_config.zero_initial_vf": "config.zero_init_value_head",
    "train_config.ppo_vf_coef": "config.vf_coeff",
    "train_config.kl_divergence_coef_rho": "config.kl_coeff",
    "train_config.coef_rho_decay": "config.kl_decay",
    "train_config.entropy_bonus_coef": "config.entropy_coeff",
    "train_config.log_ratio_range": "config.log_ratio_clamp",
    "train_config.save_interval": "checkpoint_config.save_interval",
    "train_config.keep_interval": "checkpoint_config.keep_interval",
    "logger_config.project": "trackers.wandb.project",
    "logger_config.name": "trackers.wandb.name",
}
"""Key of MineStudio 1.1.6's `online_dict` -> option of an experiment, by dotted paths."""


def name_here(key: str) -> str | None:
    """Return the name here of an option of MineStudio; None if it is unknown or ambiguous.

    Args:
        key: The option's name without its sections.
    """
    targets = {target for path, target in RENAMED.items() if path.rpartition(".")[2] == key}
    if len(targets) != 1:  # several sections may have options of the same name
        return None
    (target,) = targets
    section, _, name = target.partition(".")
    return name if section == "config" else f"{target}, next to config"


# --------------------------------------------------- the checkpoints that an experiment starts from
# They are pinned before the start: `results/cow/best` may have changed when the run is resumed, but
# the run must keep the prior it began with.


def pin_weights(experiment: Experiment) -> None:
    """Resolve folders, `latest` and `best` in `model.weights` and `prior` to checkpoints."""
    config = experiment.config
    model = config.get("model")
    if isinstance(model, dict) and "weights" in model:
        model["weights"] = _pinned(model["weights"])
    if "prior" in config:
        config["prior"] = _pinned(config["prior"])


def _pinned(value: Any) -> Any:
    """Pin a source of weights, or each choice of a search over sources."""
    if isinstance(value, Mapping):
        return {
            key: [_pinned(choice) for choice in choices] if isinstance(choices, list) else choices
            for key, choices in value.items()
        }
    return value if value == INITIAL_PRIOR else pinned(value)


# ------------------------------------------------------------------------- imports of named objects


def make_importable(folder: Path) -> None:
    """Make modules in `folder` importable, here and in Ray's workers."""
    sys.path.insert(0, str(folder))
    inherited = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(folder), inherited]))


def load_object(name: str, known: Mapping[str, str], kind: str, path: str) -> Any:
    """Import the object that a short name or dotted path refers to.

    Args:
        name: A key of `known`, or `package.module.Name` (also `package.module:Name`).
        known: Short name -> dotted path.
        kind: Kind of object, for messages.
        path: Dotted path of the option, for messages.

    Raises:
        InvalidOptionsError: There is no such object.
    """
    dotted = known.get(name, name).replace(":", ".")
    module, _, attribute = dotted.rpartition(".")
    if not module:
        raise InvalidOptionsError(
            unknown_name(kind, name, sorted(known), path)
            + " Anything else is named by its dotted import path."
        )
    try:
        return getattr(import_module(module), attribute)
    # Importing runs the module, which may raise anything.
    except Exception as error:
        raise InvalidOptionsError(f"{path}: cannot import {kind} {name!r}: {error}.") from error


# ------------------------------------------------- MineStudio's own training configs, found by name
# For example `gate_kl` for .../run/config/gate_kl.py. MineStudio's `run.py` takes such a name,
# imports the module from the installed package, and reads its text from `config/` in the current
# folder. Here both places are searched, the current folder first, where users put their own
# configs. Nothing is imported or executed in the search.

_CONFIGS_OF_MINESTUDIO = Path("online", "run", "config")
"""Folder of the configs in MineStudio's package."""

_LOCAL = Path("config")
"""Folder of the user's configs in the current folder, as in MineStudio's `run.py`."""


def minestudio_config(name: str) -> Path | None:
    """Return the config module that a bare name refers to, or None."""
    return _by_name().get(name)


def minestudio_config_names() -> list[str]:
    """Return the names of all configs."""
    return sorted(_by_name())


def _by_name() -> dict[str, Path]:
    return {
        file.stem: file
        for folder in (*_installed_folders(), _LOCAL)
        for file in sorted(folder.glob("*.py"))
        if not file.stem.startswith("_")
    }


def _installed_folders() -> list[Path]:
    try:
        spec = importlib.util.find_spec("minestudio")
    except (ImportError, ValueError):
        return []
    places = (spec and spec.submodule_search_locations) or ()
    return [Path(place) / _CONFIGS_OF_MINESTUDIO for place in places]
