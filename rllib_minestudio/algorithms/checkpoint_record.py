"""How an algorithm's checkpoint is written whole or not at all, with its record."""

from __future__ import annotations

import tempfile
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.algorithms.algorithm_config import DEPRECATED_VALUE, AlgorithmConfig

from rllib_minestudio.algorithms.checkpoint_policy import write_policy
from rllib_minestudio.checkpoints.record import (
    RECORD_FILE,
    CheckpointRecord,
    check_digests,
    digest_of,
    save_record,
)
from rllib_minestudio.plain_values import recordable
from rllib_minestudio.provenance import NUMERICS, code_identity, versions
from rllib_minestudio.whole_file import save_whole


def resolved_options(config: AlgorithmConfig) -> dict[str, Any]:
    """Every option of a config by the name a YAML file gives it, as plain data."""
    options = {
        name: value
        for name, value in config.to_dict().items()
        if not name.startswith("_") and value is not DEPRECATED_VALUE
    }
    # `model` holds the defaults of RLlib's old API stack there.
    options["model"] = config.model_config
    return dict(sorted(recordable(options).items()))


def write_record(folder: Path, config: AlgorithmConfig, result: dict[str, Any]) -> None:
    """Describe the finished checkpoint in `folder`; the last file to be written into it."""
    files = [p for p in sorted(folder.rglob("*")) if p.is_file() and p.name != RECORD_FILE]
    record = CheckpointRecord(
        saved_at=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        result=recordable({name: value for name, value in result.items() if name != "config"}),
        versions=versions(),
        code=code_identity(Path(__file__).parent),
        numerics=NUMERICS,
        config=resolved_options(config),
        files={path.relative_to(folder).as_posix(): path.stat().st_size for path in files},
        digests={path.relative_to(folder).as_posix(): digest_of(path) for path in files},
    )
    save_record(folder, record)


def check_if_local(path: Any, filesystem: Any = None) -> None:
    """Check a whole checkpoint of ours before an algorithm restores it, if it lies on this machine.

    Raises:
        CheckpointError: It is damaged.
    """
    path = getattr(path, "path", path)  # Tune gives its own `Checkpoint`
    if filesystem is None and "://" not in str(path) and Path(path, RECORD_FILE).is_file():
        check_digests(path)


def save_with_record(algorithm: Algorithm, path: Any = None, **kwargs: Any) -> str:
    """Save an algorithm's checkpoint with its record, whole or not at all.

    Args:
        algorithm: What to save, in RLlib's own way.
        path: A new folder, or a checkpoint to replace; None makes a temporary folder.
        kwargs: RLlib's `state`, `filesystem` (then `path` lies there, without a record) and
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

    save_whole(folder, save)
    return str(folder)
