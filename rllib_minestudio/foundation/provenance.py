"""Which code ran: versions of packages, the revision of the learner, the commit of a folder."""

from __future__ import annotations

import platform
import subprocess
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

DISTRIBUTION = "rllib-minestudio"
PACKAGES = (DISTRIBUTION, "ray", "torch", "numpy", "gymnasium")
"""Packages whose version decides what a run does."""

NUMERICS = 1
"""Revision of the learner's numerics; whatever changes what a config learns raises it."""

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

    Args:
        folder: A folder with code.

    Returns:
        `{"commit": str, "modified": bool}`, or {} where git does not track the folder's files
        (an installed package inside somebody's repository is not that repository's code).
    """
    if not _git(folder, "ls-files", "."):
        return {}
    commit = _git(folder, "rev-parse", "HEAD")
    if not commit:
        return {}
    return {"commit": commit, "modified": bool(_git(folder, "status", "--porcelain", "-uno"))}


def _git(folder: Path, *arguments: str) -> str:
    """Return what git prints; "" if it fails or is not there."""
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
