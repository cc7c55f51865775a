"""Which code ran: versions of packages, revision of the learner's numerics, git commit."""

from __future__ import annotations

import platform
import subprocess
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

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
