"""The experiment files that come with the package, which are found by name anywhere.

`rllib_minestudio/tuned_examples` is a link to the folder of that name at the root of the
repository; wheels and source distributions hold copies of its files.
"""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parents[2] / "tuned_examples"

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
