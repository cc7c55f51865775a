"""What a checkpoint says about itself, and how a folder is written whole or not at all.

Beside RLlib's own files every checkpoint has a `record.yaml`, made to be read: the last result,
the versions and the code that wrote it, the whole resolved config, and the size of each file. The
sizes tell a checkpoint that was copied to its end from one that a crash cut short.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import yaml
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.algorithms.algorithm_config import DEPRECATED_VALUE, AlgorithmConfig

from rllib_minestudio.errata import NUMERICS
from rllib_minestudio.errors import CheckpointError
from rllib_minestudio.identity import code_identity, plain, versions

RECORD_FILE = "record.yaml"

_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, kw_only=True)
class CheckpointRecord:
    """The contents of `record.yaml`.

    Attributes:
        saved_at: When, in UTC, as ISO 8601.
        result: The last result before, without its config (`training_iteration`, ...).
        versions: Package -> version.
        code: `identity.code_identity()` of this package's checkout.
        numerics: Revision of the learner's numerics (`errata.NUMERICS`); 0 in records from before
            there were revisions.
        config: Every option of the algorithm, as plain data.
        files: Path inside the folder -> size in bytes, the record itself left out.
    """

    saved_at: str
    result: dict[str, Any]
    versions: dict[str, str]
    code: dict[str, Any]
    numerics: int = 0
    config: dict[str, Any]
    files: dict[str, int]

    @property
    def iteration(self) -> int:
        """Training iterations behind the checkpoint."""
        return int(self.result.get("training_iteration", 0))


def resolved_options(config: AlgorithmConfig) -> dict[str, Any]:
    """Every option of a config by the name a YAML file gives it, as plain data."""
    options = {
        name: value
        for name, value in config.to_dict().items()
        if not name.startswith("_") and value is not DEPRECATED_VALUE
    }
    # `model` holds the defaults of RLlib's old API stack there.
    options["model"] = config.model_config
    return dict(sorted(plain(options).items()))


def write_record(folder: Path, config: AlgorithmConfig, result: dict[str, Any]) -> None:
    """Describe the finished checkpoint in `folder`; the last file to be written into it."""
    record = CheckpointRecord(
        saved_at=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        result=plain({name: value for name, value in result.items() if name != "config"}),
        versions=versions(),
        code=code_identity(Path(__file__).parent),
        numerics=NUMERICS,
        config=resolved_options(config),
        files={
            path.relative_to(folder).as_posix(): path.stat().st_size
            for path in sorted(folder.rglob("*"))
            if path.is_file() and path.name != RECORD_FILE
        },
    )
    text = yaml.dump(asdict(record), Dumper=_Dumper, sort_keys=False, allow_unicode=True)
    (folder / RECORD_FILE).write_text(text)


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
        write_record(partial, algorithm.config, result)

    save_whole(folder, save)
    return str(folder)


def read_record(folder: str | os.PathLike[str]) -> CheckpointRecord:
    """Read a checkpoint's record and compare its files with it.

    Raises:
        CheckpointError: There is no record, or the folder does not hold what it says.
    """
    folder = Path(folder)
    file = folder / RECORD_FILE
    if not file.is_file():
        raise CheckpointError(
            f"{str(folder)!r} has no {RECORD_FILE}: it is not a checkpoint of this package, or "
            "was cut short while it was written."
        )
    record = parse_record(file)
    for name, size in record.files.items():
        path = folder / name
        found = path.stat().st_size if path.is_file() else None
        if found != size:
            state = "is missing" if found is None else f"has {found:,} bytes, not {size:,}"
            raise CheckpointError(
                f"{str(folder)!r} is incomplete: {name} {state}. It was cut short while it was "
                "written or copied; take another checkpoint."
            )
    return record


def parse_record(file: Path) -> CheckpointRecord:
    """Read a record alone, wherever it lies.

    Raises:
        CheckpointError: It is not one.
    """
    try:
        return CheckpointRecord(**yaml.load(file.read_text(), Loader=_Loader))
    except (yaml.YAMLError, TypeError, UnicodeDecodeError) as error:
        raise CheckpointError(f"{str(file)!r} is damaged: {error}") from error


def save_whole(path: Path, save: Callable[[Path], Any]) -> None:
    """Let `save` fill a folder that takes the name `path` only once it is complete.

    A checkpoint that was there before is replaced at the very end. Whatever goes wrong until
    then, a full disk or the end of the process, leaves it as it was.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    replaced = path.with_name(f".{path.name}.{os.getpid()}.replaced")
    try:
        save(partial)
        if path.exists():
            path.rename(replaced)
        partial.rename(path)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        shutil.rmtree(replaced, ignore_errors=True)
