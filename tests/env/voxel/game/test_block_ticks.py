"""Scheduled ticks of blocks: order, bounds, land that is not loaded; against a naive list."""

from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rllib_minestudio.env.voxel.game import block_ticks
from rllib_minestudio.env.voxel.game.block_ticks import BlockTicks
from rllib_minestudio.env.voxel.game.game import Game
from rllib_minestudio.env.voxel.world.world import World

FAR = 5000
"""A column that is not loaded while the player is at the origin."""


@pytest.fixture(scope="module")
def world():
    world = World()
    world.load_around(0.0, 0.0)
    return world


class Recorder:
    """Takes at most `room` places of each kind in a tick, writes them down, and schedules more."""

    def __init__(self, ticks, room):
        self.ticks, self.room = ticks, room
        self.taken, self.left = [], {}

    def take_due(self, world):
        self.left = dict(self.room)
        for kind, places in self.ticks.advance(world):
            while self.left[kind] and (place := next(places, None)) is not None:
                self.take(kind, place)

    def take(self, kind, place):
        self.left[kind] -= 1
        self.taken.append((self.ticks.now, kind, place))
        if place[0] % 3 == 0:  # some go on: they, or their neighbours of another kind
            other = "burn" if kind == "grow" else "grow"
            self.ticks.schedule(other, (place[0] + place[1], place[1], 0), place[1] % 3)


class NaiveTicks:
    """A list of what is scheduled, sorted in every tick."""

    def __init__(self):
        self.now, self.number, self.entries = 0, 0, []

    def schedule(self, kind, place, delay, priority=0):
        if any(entry[3:] == (kind, place) for entry in self.entries):
            return
        self.number += 1
        self.entries.append((self.now + max(delay, 1), priority, self.number, kind, place))

    def take_due(self, world, recorder, most):
        self.now += 1
        recorder.left = dict(recorder.room)
        for entry in sorted(entry for entry in self.entries if entry[0] <= self.now):
            kind, place = entry[3:]
            if most and recorder.left[kind] and world.is_loaded(place[0], place[2]):
                most -= 1
                self.entries.remove(entry)
                recorder.take(kind, place)


PLACES = st.tuples(st.integers(-4, 4) | st.just(FAR), st.integers(0, 5), st.just(0))
SCHEDULED = st.tuples(
    st.sampled_from(("grow", "burn")), PLACES, st.integers(-1, 4), st.integers(-3, 3)
)
STEPS = st.lists(st.lists(SCHEDULED, max_size=6), max_size=12)


@settings(max_examples=80)
@given(STEPS, st.integers(0, 3), st.sampled_from((2, 5, 1000)))
def test_ticks_take_place_as_in_a_sorted_list(world, steps, room, most):
    ticks, naive = BlockTicks(), NaiveTicks()
    rooms = {"grow": room, "burn": 1000}
    found, wanted = Recorder(ticks, rooms), Recorder(naive, rooms)
    with mock.patch.object(block_ticks, "MOST_PER_TICK", most):
        for step in [*steps, *[[]] * 6]:
            for scheduled in step:
                ticks.schedule(*scheduled)
                naive.schedule(*scheduled)
            found.take_due(world)
            naive.take_due(world, wanted, most)
            assert found.taken == wanted.taken
            assert len(ticks) == len(naive.entries)


def places_taken(ticks, world):
    return [place for _, places in ticks.advance(world) for place in places]


def test_a_place_is_scheduled_once_per_kind_and_time(world):
    ticks = BlockTicks()
    ticks.schedule("grow", (1, 2, 3), 2)
    ticks.schedule("grow", (1, 2, 3), 1)
    ticks.schedule("grow", (3, 2, 1), 2, priority=-1)
    assert len(ticks) == 2
    assert [places_taken(ticks, world) for _ in range(3)] == [[], [(3, 2, 1), (1, 2, 3)], []]
    ticks.schedule("grow", (1, 2, 3), 1)
    assert places_taken(ticks, world) == [(1, 2, 3)]


def test_more_than_65536_ticks_are_shared_out(world):
    ticks = BlockTicks()
    for number in range(70_000):
        ticks.schedule("grow", (number % 64, number // 64 % 128, number // 8192), 1)
    first, second = places_taken(ticks, world), places_taken(ticks, world)
    assert (len(first), len(second)) == (65_536, 70_000 - 65_536)
    assert not set(first) & set(second)


def test_ticks_in_land_that_is_not_loaded_wait_for_the_player():
    world, ticks = World(), BlockTicks()
    world.load_around(0.0, 0.0)
    for x in (FAR, FAR + 1, 3):
        ticks.schedule("grow", (x, 70, 0), 1)
    assert places_taken(ticks, world) == [(3, 70, 0)]
    ticks.schedule("grow", (FAR, 70, 0), 1)  # still pending
    assert places_taken(ticks, world) == [] and len(ticks) == 2
    world.load_around(float(FAR), 0.0)
    assert places_taken(ticks, world) == [(FAR, 70, 0), (FAR + 1, 70, 0)] and len(ticks) == 0
    world.load_around(0.0, 0.0)
    ticks.schedule("grow", (FAR, 70, 0), 1)
    assert places_taken(ticks, world) == []
    world.load_around(float(FAR), 0.0)
    assert places_taken(ticks, world) == [(FAR, 70, 0)]


def test_a_new_game_has_nothing_scheduled():
    game = Game()
    game.begin(1, None)
    game.state.block_ticks.schedule("fall", (0, 70, 0), 5)
    game.begin(1, None)
    assert len(game.state.block_ticks) == 0 == game.state.block_ticks.now
