"""Saving a checkpoint: RLlib's files, the policy as plain data files, and the record.

    policy/network.json         the network's options
    policy/model.safetensors    its weights
    policy/playing.yaml         the algorithm, its environment and what else playing depends on
    policy_average/...          the same with averaged weights, if `ema_decay` is set

RLlib's own files are pickles, which may execute arbitrary code when they are loaded. Training
resumes from them; evaluation and playing read the files above. `playing.yaml` is left out if an
option is an object that cannot be written as text.
"""

from __future__ import annotations

import importlib
import inspect
import logging
import shutil
import tempfile
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import yaml
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.algorithms.algorithm_config import DEPRECATED_VALUE, AlgorithmConfig

from rllib_minestudio import checkpoints
from rllib_minestudio.algorithms.environments import looks_of_env, tell_other_looks
from rllib_minestudio.algorithms.learner.learner import COMPONENT_WEIGHT_AVERAGE
from rllib_minestudio.checkpoints import Checkpoint
from rllib_minestudio.checkpoints.checkpoint import (
    MODULE_FOLDERS,
    MODULE_STATE,
    PLAYING_FILE,
    POLICY_FOLDER,
)
from rllib_minestudio.checkpoints.lookup import POLICY_AVERAGE
from rllib_minestudio.checkpoints.record import (
    NUMERICS,
    RECORD_FILE,
    CheckpointRecord,
    check_digests,
    code_identity,
    digest_of,
    read_record,
    save_record,
    versions,
    with_own_digest,
)
from rllib_minestudio.checkpoints.trust import SEAL_FILE, seal
from rllib_minestudio.foundation.files import save_whole, whole_file, write_whole
from rllib_minestudio.foundation.values import recordable
from rllib_minestudio.models.policy import copy_policy
from rllib_minestudio.models.policy_registry import name_of_policy
from rllib_minestudio.models.rl_modules import VPTRLModule
from rllib_minestudio.models.vpt.weights import copy_plain

_AVERAGE = f"learner_group/learner/{COMPONENT_WEIGHT_AVERAGE}"

_logger = logging.getLogger(__name__)

_OPTIONS = (
    "env_config",
    "num_envs_per_env_runner",
    "seed",
    "env_pool",
    "prior",
    "prior_update_interval",
)
"""Options that playing depends on besides `env`, if the algorithm has them."""


def write_policy(checkpoint: Path, config: AlgorithmConfig) -> None:
    """Copy the policy of a checkpoint that RLlib has just written, and its average if there is one.

    It is left out if nothing could load it: if its class, or an option of it, has no name.
    """
    places = [checkpoint / part for part in MODULE_FOLDERS]
    for found, folder in ((places, POLICY_FOLDER), ([checkpoint / _AVERAGE], POLICY_AVERAGE)):
        modules = [place for place in found if (place / MODULE_STATE).is_file()]
        if modules:
            _write_policy(modules[0], checkpoint / folder, config)


def _write_policy(module: Path, folder: Path, config: AlgorithmConfig) -> None:
    policy, checkpoint = config.policy_class, checkpoints.open(module)
    if issubclass(policy, VPTRLModule):
        copy_plain(checkpoint, folder)
    else:
        # The module's own options: complete, and without the weights that training began with.
        name, model = name_of_policy(policy), dict(checkpoint.options or {})
        if name is None or not _is_plain(model):
            _logger.warning(
                "%s is not saved, so the policy cannot be evaluated: %s or an option in model=%s "
                "cannot be named in a file. Put the class into a module of its own, and give plain "
                "options.",
                folder,
                policy.__qualname__,
                model,
            )
            return
        copy_policy(checkpoint, folder, name, recordable(model))
    options = {name: getattr(config, name) for name in _OPTIONS if hasattr(config, name)}
    # The source of the prior, if the prior is the network that training started with.
    options["weights"] = config.model_config.get("weights")
    # Tune trains a subclass that it creates, which cannot be imported by name.
    algorithm = next(filter(None, map(_name_of, inspect.getmro(config.algo_class))))
    env = _name_of(config.env)
    if env is not None and _is_plain(options):
        facts = {"algorithm": algorithm, "env": env, **recordable(options)}
        if (looks := looks_of_env(config.env, config.env_config)) is not None:
            facts["looks"] = looks
        text = with_own_digest(yaml.safe_dump(facts, sort_keys=False))
        write_whole(folder / PLAYING_FILE, text)
    seal(folder)


def copy_playing(checkpoint: Checkpoint, folder: Path) -> bool:
    """Copy `playing.yaml` next to a copy of the policy; return whether there is one.

    The copy of a trusted checkpoint gets this user's seal.

    Raises:
        OSError: If it cannot be written.
    """
    file = checkpoint.playing_file
    if file is not None:
        with whole_file(folder / PLAYING_FILE) as partial:
            shutil.copyfile(file, partial)
    if checkpoint.trusted:
        seal(folder)
    return file is not None


def _name_of(found: Any) -> str | None:
    """Return the name under which a class can be imported; None if there is none."""
    if found is None or isinstance(found, str):
        return found
    module, name = getattr(found, "__module__", ""), getattr(found, "__qualname__", "")
    try:
        known = getattr(importlib.import_module(module), name, None)
    except (ImportError, ValueError):
        return None
    return f"{module}.{name}" if known is found and module != "__main__" else None


def _is_plain(value: Any) -> bool:
    """Whether a value survives YAML unchanged, except that tuples become lists."""
    if isinstance(value, Mapping):
        return all(isinstance(key, str | int) and _is_plain(part) for key, part in value.items())
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, bool | int | float | str)


# ---------------------------------- the checkpoint and its record, written completely or not at all


def resolved_options(config: AlgorithmConfig) -> dict[str, Any]:
    """Return all options of a config as plain data, by their names in YAML files."""
    options = {
        name: value
        for name, value in config.to_dict().items()
        if not name.startswith("_") and value is not DEPRECATED_VALUE
    }
    # In `to_dict`, `model` holds the defaults of RLlib's old API stack.
    options["model"] = config.model_config
    return dict(sorted(recordable(options).items()))


def write_record(folder: Path, config: AlgorithmConfig, result: dict[str, Any]) -> None:
    """Write the record of a finished checkpoint, the last file but for the seal."""
    own = (RECORD_FILE, SEAL_FILE)
    files = [p for p in sorted(folder.rglob("*")) if p.is_file() and p.name not in own]
    record = CheckpointRecord(
        saved_at=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        result=recordable({name: value for name, value in result.items() if name != "config"}),
        versions=versions(),
        code=code_identity(Path(__file__).parent),
        numerics=NUMERICS,
        looks=looks_of_env(config.env, config.env_config),
        config=resolved_options(config),
        files={path.relative_to(folder).as_posix(): path.stat().st_size for path in files},
        digests={path.relative_to(folder).as_posix(): digest_of(path) for path in files},
    )
    save_record(folder, record)


def check_if_local(path: Any, config: AlgorithmConfig, filesystem: Any = None) -> None:
    """Verify a checkpoint of ours before it is restored, if it is a local one.

    Warns if training goes on with frames of other looks.

    Args:
        path: The checkpoint.
        config: What training goes on with.
        filesystem: The file system that the path is on; None for the local one.

    Raises:
        CheckpointError: If it is damaged.
    """
    path = getattr(path, "path", path)  # Tune gives its own `Checkpoint`
    if filesystem is None and "://" not in str(path) and Path(path, RECORD_FILE).is_file():
        check_digests(path)
        now = looks_of_env(config.env, config.env_config)
        tell_other_looks(str(path), read_record(path).looks, now)


def save_with_record(algorithm: Algorithm, path: Any = None, **kwargs: Any) -> str:
    """Save an algorithm's checkpoint with its record, completely or not at all.

    Args:
        algorithm: The algorithm to save.
        path: A new folder, or a checkpoint to replace; None creates a temporary folder.
        kwargs: RLlib's `state`, `filesystem` (on which `path` is then saved, without a record) and
            `use_msgpack`.

    Returns:
        The folder.
    """
    if kwargs.get("filesystem") is not None or "://" in str(path):
        return str(Algorithm.save_to_path(algorithm, path, **kwargs))
    folder = Path(path or tempfile.mkdtemp(prefix="checkpoint_")).resolve()

    def save(partial: Path) -> None:
        Algorithm.save_to_path(algorithm, str(partial), **kwargs)
        result = {"training_iteration": algorithm.iteration, **(algorithm._last_result or {})}
        write_policy(partial, algorithm.config)
        write_record(partial, algorithm.config, result)
        seal(partial)

    save_whole(folder, save)
    return str(folder)
