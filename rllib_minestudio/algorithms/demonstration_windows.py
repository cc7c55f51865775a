"""How demonstrations are cut into windows for a policy: the parts it reads, at its image size."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from rllib_minestudio.demonstrations import WindowOptions, open_episode
from rllib_minestudio.foundation.observations import IMAGE, ObservationPart


def window_options(
    parts: Mapping[str, ObservationPart], length: int, burn_in: int, max_null_run: int | None = None
) -> WindowOptions:
    """Return how recorded episodes are cut into windows for a policy.

    Args:
        parts: The observation parts it reads (`RecurrentRLModule.observation_parts`).
        length: Steps to imitate.
        burn_in: Frames before them.
        max_null_run: How many consecutive null actions are kept; None: all.
    """
    size = None
    if IMAGE in parts:
        height, width, _ = parts[IMAGE].shape
        size = (width, height)
    names = tuple(name for name in parts if name != IMAGE)
    return WindowOptions(length, burn_in, size, names, max_null_run)


def unreadable_parts(
    parts: Mapping[str, ObservationPart], recordings: Iterable[str | Path]
) -> list[str]:
    """Check that recordings have the observation parts that a policy reads.

    Args:
        parts: The observation parts it reads.
        recordings: Paths of recorded episodes.

    Returns:
        One sentence about the first mismatch; empty if there is none.

    Raises:
        RecordingError: If one of the paths is not a recording.
    """
    wanted = {name: part for name, part in parts.items() if name != IMAGE}
    for path in recordings if wanted else ():
        recorded = open_episode(path).meta.get("observations") or {}
        for name, part in wanted.items():
            told = recorded.get(name)
            promised = f"{part.dtype} {part.shape}"
            has = told and f"{told['dtype']} {tuple(told['shape'])}"
            if has != promised:
                return [
                    f"the policy reads {name!r}, {promised}, but the recording "
                    f"{str(path)!r} has {'it as ' + has if has else 'none'}: record it in the "
                    "environment that the policy plays in, or leave out the callback that adds "
                    f"{name!r}."
                ]
    return []
