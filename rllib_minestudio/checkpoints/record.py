"""The record of a checkpoint, which tells its contents and origin and detects damage.

Besides RLlib's own files, every checkpoint has a human-readable `record.yaml` with its format, the
last result, the versions and the code that wrote it, the complete resolved config, and the size and
digest of each file. Sizes quickly detect a checkpoint that was only partly written or copied;
digests, which are compared when it is loaded, detect damage. The last line is the record's own
digest.
"""

from __future__ import annotations

import hashlib
import logging
import os
import platform
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import yaml

from rllib_minestudio.errors import CheckpointError, CheckpointFormatError
from rllib_minestudio.foundation.files import SmallFileError, read_text, write_whole
from rllib_minestudio.foundation.options import is_integer, is_number, shown

# ------------- which code ran: versions of packages, revision of the learner's numerics, git commit

DISTRIBUTION = "rllib-minestudio"
PACKAGES = (DISTRIBUTION, "ray", "torch", "numpy", "gymnasium")
"""Packages whose versions affect a run's results."""

NUMERICS = 1
"""Revision of the learner's numerics. A change to what the same config learns increments it."""

SECONDS_FOR_GIT = 10.0


@cache
def versions() -> dict[str, str]:
    """Return the versions of Python and of `PACKAGES`."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


@cache
def code_identity(folder: Path) -> dict[str, Any]:
    """Return the git commit of a source folder.

    Returns:
        `{"commit": str, "modified": bool}`, or {} if git does not track the folder's files
        (a package installed inside a repository is not that repository's code).
    """
    if not _git(folder, "ls-files", "."):
        return {}
    commit = _git(folder, "rev-parse", "HEAD")
    if not commit:
        return {}
    return {"commit": commit, "modified": bool(_git(folder, "status", "--porcelain", "-uno"))}


def _git(folder: Path, *arguments: str) -> str:
    """Return git's output; "" if git fails or is not installed."""
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True,
            text=True,
            timeout=SECONDS_FOR_GIT,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()


# --------------------------------------------------------------------------- format of a checkpoint

FORMAT = 2
"""Version of the checkpoint format; others are refused. A change to what is read increments it."""


def check_format(file: Path, facts: Mapping[str, Any]) -> None:
    """Check that a record has the format that this version reads.

    Args:
        file: The record's path.
        facts: Its contents, of which only the format is checked.

    Raises:
        CheckpointFormatError: The format is another one, or missing.
    """
    found = facts.get("format")
    if is_integer(found) and found == FORMAT:
        return
    said = facts.get("versions")
    wrote = said.get(DISTRIBUTION) if isinstance(said, Mapping) else None
    other = (
        f"{DISTRIBUTION} {wrote}" if isinstance(wrote, str) else f"the version of {DISTRIBUTION}"
    )
    raise CheckpointFormatError(
        f"{str(file)!r} "
        + (f"is of format {shown(found)}" if "format" in facts else "names no format")
        + f", and {DISTRIBUTION} {versions()[DISTRIBUTION]} reads format {FORMAT} of checkpoints: "
        + f"use {other}, which wrote it."
    )


RECORD_FILE = "record.yaml"

_OWN_DIGEST = "# sha256 of the lines above: "
_LARGEST_RECORD = 64 * 1024**2
logger = logging.getLogger(__name__)

_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


@dataclass(frozen=True, kw_only=True)
class CheckpointRecord:
    """The contents of `record.yaml`.

    Attributes:
        saved_at: Time of saving in UTC, as ISO 8601.
        result: The last result before saving, without its config (`training_iteration`, ...).
        versions: Package -> version.
        code: `provenance.code_identity()` of this package's checkout.
        numerics: Revision of the learner's numerics (`record.NUMERICS`).
        looks: Looks of the engine's frames (`env.voxel.contract`); None if it does not play
            in the embedded engine.
        config: All options of the algorithm, as plain data.
        files: Path inside the folder -> size in bytes, without the record itself.
        digests: Path inside the folder -> SHA-256 of the file.
        format: Format of the checkpoint (`FORMAT`).
    """

    format: int = FORMAT
    saved_at: str
    result: dict[str, Any]
    versions: dict[str, str]
    code: dict[str, Any]
    numerics: int
    looks: dict[str, Any] | None = None
    config: dict[str, Any]
    files: dict[str, int]
    digests: dict[str, str]

    @property
    def iteration(self) -> int:
        """Number of training iterations before the checkpoint."""
        return int(self.result.get("training_iteration", 0))

    @property
    def mean_return(self) -> float | None:
        """Mean return of the episodes that ended last before it was saved; None if none had."""
        runners = self.result.get("env_runners")
        found: Any = runners.get("episode_return_mean") if isinstance(runners, dict) else None
        return float(found) if is_number(found) else None


def save_record(folder: Path, record: CheckpointRecord) -> None:
    """Write a record with its own digest, as the last file of its checkpoint."""
    text = yaml.dump(asdict(record), Dumper=_Dumper, sort_keys=False, allow_unicode=True)
    write_whole(folder / RECORD_FILE, with_own_digest(text))


def with_own_digest(text: str) -> str:
    """Append a line with the text's own digest, a comment in YAML."""
    return f"{text}{_OWN_DIGEST}{hashlib.sha256(text.encode()).hexdigest()}\n"


def require_own_digest(text: str) -> None:
    """Check a text that `with_own_digest` has written.

    Raises:
        SmallFileError: It has changed since, or was cut short.
    """
    body, mark, own = text.rpartition(_OWN_DIGEST)
    if not mark:
        raise SmallFileError("its last line is missing")
    if own.strip() != hashlib.sha256(body.encode()).hexdigest():
        raise SmallFileError("its text has changed since it was written")


def read_record(folder: str | os.PathLike[str]) -> CheckpointRecord:
    """Read a checkpoint's record, and compare the sizes of the files with it.

    Raises:
        CheckpointError: There is no record, or a file is missing or has another size.
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
    """Read a record without looking at its checkpoint's files.

    Raises:
        CheckpointError: It is not a record, or is damaged.
        CheckpointFormatError: It has another format.
    """
    from rllib_minestudio.checkpoints.formats import RecordDocument
    from rllib_minestudio.foundation.documents import given, parse_document, read_plain

    try:
        facts = read_plain(file, _LARGEST_RECORD)
        if not isinstance(facts, dict):
            raise SmallFileError("it is not a mapping")
        check_format(file, facts)
        told = given(parse_document(facts, RecordDocument))
        require_own_digest(read_text(file, _LARGEST_RECORD))
    except (OSError, SmallFileError) as error:
        raise CheckpointError(f"{str(file)!r} is damaged: {error}.") from error
    return CheckpointRecord(**told)


def check_digests(folder: str | os.PathLike[str]) -> None:
    """Compare all files of a checkpoint with its record, before it is loaded.

    Checkpoints without a record, which RLlib alone wrote, are not checked; a warning says so.

    Raises:
        CheckpointError: A file is missing or has changed.
    """
    folder = Path(folder)
    if not (folder / RECORD_FILE).is_file():
        logger.warning("%s has no %s: it is loaded unchecked.", folder, RECORD_FILE)
        return
    record = read_record(folder)
    for name in record.files:
        if digest_of(folder / name) != record.digests.get(name):
            raise CheckpointError(
                f"{str(folder)!r} is damaged: {name} has changed since it was written (its SHA-256 "
                "differs). Take another checkpoint, or copy this one again."
            )


def digest_of(path: Path) -> str:
    """Return a file's SHA-256.

    Raises:
        OSError: It does not exist or cannot be read.
    """
    with path.open("rb") as file:
        found = hashlib.sha256()
        while block := file.read(2**20):
            found.update(block)
        return found.hexdigest()
