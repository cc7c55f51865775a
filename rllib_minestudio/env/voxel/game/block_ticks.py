"""Scheduled ticks of blocks, as in Minecraft Java 1.16: what is to happen at a place, and when.

A tick of a kind is scheduled for a place at most once at a time; who schedules it again has no
effect. Ticks take place in the order of their time, their priority and their scheduling, which is
the same in every process. In land that is not loaded they wait until it is.

`game.BLOCK_TICKS` names the kinds, each with its handler, which takes all places that are due in
one go: changing many blocks at once is cheaper than one after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from typing import Any

from rllib_minestudio.env.voxel.world.box_field import CHUNK
from rllib_minestudio.env.voxel.world.land import Chunk
from rllib_minestudio.env.voxel.world.world import World

MOST_PER_TICK = 65_536
"""Most scheduled ticks that take place in one tick of the game; the others follow in the next."""

Place = tuple[int, int, int]
"""A block's x, y and z."""
_NOWHERE: set[Place] = set()
_Key = tuple[int, int, int, Place]
"""The tick in which it is due, its priority, its number in the order of scheduling, its place."""


class BlockTicks:
    """The scheduled ticks of a game.

    Attributes:
        now: Ticks since the game began.
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget everything, for a new game."""
        self.now = 0
        self._scheduled = 0
        self._pending: set[tuple[str, Place]] = set()
        self._places: dict[str, set[Place]] = {}
        self._queues: dict[str, list[_Key]] = {}
        self._away: dict[Chunk, list[tuple[str, _Key]]] = {}
        self._asked_at: Chunk | None = None
        self._left = 0

    def scheduled(self) -> list[tuple[str, int, int, Place]]:
        """Return kind, time, priority and place of all ticks, in their order."""
        waiting = [(key, kind) for kind, queue in self._queues.items() for key in queue]
        away = [(key, kind) for entries in self._away.values() for kind, key in entries]
        return [
            (kind, due, priority, place)
            for (due, priority, _, place), kind in sorted(waiting + away)
        ]

    def begin_with(self, now: int, scheduled: Iterable[tuple[str, int, int, Place]]) -> None:
        """Schedule ticks, as `scheduled` returns them, in place of all others."""
        self.clear()
        self.now = now
        for kind, due, priority, place in scheduled:
            self._expect(kind, place)
            self._scheduled += 1
            key = due, priority, self._scheduled, place
            heappush(self._queues.setdefault(kind, []), key)

    def __len__(self) -> int:
        """How many ticks are scheduled, in all land."""
        return len(self._pending)

    def schedule(self, kind: str, place: Place, delay: int, priority: int = 0) -> None:
        """Schedule a tick, unless one of this kind is pending there.

        Args:
            kind: One of `game.BLOCK_TICKS`.
            place: Where.
            delay: Ticks from now on, at least 1. What happens before `advance` in a tick of the
                game belongs to the last tick.
            priority: Lower ones come first within a tick; Minecraft has -3 to 3.
        """
        if (kind, place) in self._pending:
            return
        self._expect(kind, place)
        self._scheduled += 1
        key = self.now + max(delay, 1), priority, self._scheduled, place
        heappush(self._queues.setdefault(kind, []), key)

    def places(self, kind: str) -> set[Place]:
        """Return the places for which a tick of a kind is scheduled; not to be changed."""
        return self._places.get(kind, _NOWHERE)

    def _expect(self, kind: str, place: Place) -> None:
        self._pending.add((kind, place))
        self._places.setdefault(kind, set()).add(place)

    def advance(self, world: World) -> Iterator[tuple[str, Iterator[Place]]]:
        """Advance by one tick, and yield what is due, in its order.

        What is scheduled meanwhile is due in a later tick.

        Yields:
            A kind, and the places where it is due before any other kind is. Those that the caller
            does not take are due again in the next tick, before all others.
        """
        self.now += 1
        if not self._pending:
            return
        if self._away and self._asked_at != world.centre:
            self._welcome_back(world)
        self._left = MOST_PER_TICK
        stopped: set[str] = set()
        while self._left and (heads := self._due(stopped)):
            (_, kind), *others = heads
            # Up to the first place of another kind; what is scheduled meanwhile comes after both.
            until = others[0][0] if others else (self.now + 1,)
            yield kind, self._take(kind, until, world)
            queue = self._queues[kind]
            if queue and queue[0] < until:
                stopped.add(kind)

    def _due(self, stopped: set[str]) -> list[tuple[_Key, str]]:
        """The first key of each kind that is due, in order; those in `stopped` took no more."""
        return sorted(
            (queue[0], kind)
            for kind, queue in self._queues.items()
            if queue and queue[0][0] <= self.now and kind not in stopped
        )

    def _take(self, kind: str, until: tuple[Any, ...], world: World) -> Iterator[Place]:
        """Yield the loaded places of a kind whose keys are below `until`."""
        queue = self._queues[kind]
        while self._left and queue and queue[0] < until:
            key = heappop(queue)
            place = key[-1]
            if not world.is_loaded(place[0], place[2]):
                chunk = place[0] // CHUNK, place[2] // CHUNK
                self._away.setdefault(chunk, []).append((kind, key))
                self._asked_at = None
                continue
            self._left -= 1
            self._pending.remove((kind, place))
            self._places[kind].discard(place)
            yield place

    def _welcome_back(self, world: World) -> None:
        """Put the ticks of land that is loaded again back into their queues."""
        self._asked_at = world.centre
        for chunk in list(self._away):
            if world.is_loaded(chunk[0] * CHUNK, chunk[1] * CHUNK):
                for kind, key in self._away.pop(chunk):
                    heappush(self._queues[kind], key)
