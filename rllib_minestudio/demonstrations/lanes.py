"""Episodes side by side: batches in which every window continues the one at its place before.

The memory that a policy has after one batch is then what it has before the next, as when it plays,
however long an episode is. What has to be in memory is an episode per lane.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Iterator
from typing import TypeVar

import numpy as np

Item = TypeVar("Item")


def whole_episodes(windows: Iterable[tuple[Hashable, bool, Item]]) -> Iterator[list[Item]]:
    """Put the windows of several episodes, which may arrive in turns, together again.

    Args:
        windows: Which episode one is of, whether it is the last of that, and the window; those of
            one episode in their order.

    Yields:
        An episode's windows, when its last one has arrived.
    """
    arriving: dict[Hashable, list[Item]] = {}
    for episode, last, window in windows:
        arriving.setdefault(episode, []).append(window)
        if last:
            yield arriving.pop(episode)


def side_by_side(
    episodes: Iterable[list[Item]], lanes: int, random: np.random.Generator | None = None
) -> Iterator[list[Item | None]]:
    """Yield the next window of each lane, in which one episode follows the other.

    Args:
        episodes: Those that lanes take the next one from when they have come to an end.
        lanes: How many.
        random: Where in its first episode each lane begins: episodes of one length would otherwise
            begin together for ever. None begins at their beginning.

    Yields:
        A window per lane; None for a lane for which no episode is left, until none has one.
    """
    source = iter(episodes)
    waiting: list[deque[Item]] = [deque() for _ in range(lanes)]
    for lane in waiting:
        first = next(source, [])
        skipped = int(random.integers(len(first))) if random is not None and first else 0
        lane.extend(first[skipped:])
    while any(waiting):
        yield [lane.popleft() if lane else None for lane in waiting]
        for lane in waiting:
            if not lane:
                lane.extend(next(source, []))
