"""Which code ran: versions, commits, and values as plain data that can be written down."""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Mapping
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

PACKAGES = ("rllib-minestudio", "ray", "torch", "numpy", "gymnasium")
"""Packages whose version decides what a run does."""

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


def plain(value: Any) -> Any:
    """Turn a value into what YAML and JSON can hold: numbers, strings, lists and mappings.

    Arrays become lists, classes and functions their dotted path, anything else its `repr`.
    """
    if value is None or (isinstance(value, bool | int | float | str) and _is_builtin(value)):
        return value
    if isinstance(value, Mapping):
        return {_key(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):  # numpy's scalars and arrays, torch's tensors
        return plain(value.tolist())
    if isinstance(value, type) or callable(value):
        module, name = getattr(value, "__module__", ""), getattr(value, "__qualname__", "")
        return f"{module}.{name}" if name else repr(value)
    return repr(value)


def _is_builtin(value: Any) -> bool:
    """Return whether a value is of a built-in type itself; numpy's float64 is a float, too."""
    return type(value).__module__ == "builtins"


def _key(key: Any) -> Any:
    return key if isinstance(key, str | int) and _is_builtin(key) else str(key)
