"""The experiment files that come with the package, which are found by name anywhere.

In a checkout they are in `tuned_examples`, beside the package; an installed package has that folder
inside (see setup.py).
"""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).parents[2]
_INSTALLED = _PACKAGE / "tuned_examples"
FOLDER = _INSTALLED if _INSTALLED.is_dir() else _PACKAGE.parent / "tuned_examples"

_SUFFIX = ".yaml"


def packaged_names() -> list[str]:
    """Return the names that there are, such as `cow`."""
    return sorted(path.stem for path in FOLDER.glob(f"*{_SUFFIX}"))


def packaged_example(path: Path) -> Path | None:
    """Return the file that a bare name means, with or without `.yaml`; None if there is none.

    Args:
        path: As a user gave it. A path with a folder in it is never a bare name.
    """
    if path.name != str(path) or path.suffix not in ("", _SUFFIX):
        return None
    return FOLDER / f"{path.stem}{_SUFFIX}" if path.stem in packaged_names() else None
