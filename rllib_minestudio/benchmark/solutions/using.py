"""Solutions that put something down, or use what is in the hand on a block or an animal."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from itertools import product

from rllib_minestudio.benchmark.solutions.building import (
    ANY_ITEMS,
    SOME_PREY,
    OmniscientBody,
    SolutionFamily,
    check_block,
    check_item,
    put_at,
)
from rllib_minestudio.benchmark.solutions.gathering import run_by_path, run_to
from rllib_minestudio.env.agents.hunter import BODIES, EYE_HEIGHT, ScriptedHunter
from rllib_minestudio.env.agents.toolmaker.body import Cell, Point, Skill, hold_one_of, middle
from rllib_minestudio.env.agents.toolmaker.gathering import (
    Stations,
    can_mine_from,
    collect,
    place,
    places_for,
)
from rllib_minestudio.env.agents.toolmaker.walking import mine, walk
from rllib_minestudio.env.voxel.items.items import ITEM_ID, ItemStack
from rllib_minestudio.env.voxel.screens.enchanting import offers
from rllib_minestudio.env.voxel.screens.geometry import LAYOUTS
from rllib_minestudio.env.voxel.screens.menu import (
    BUTTON_HEIGHT,
    BUTTON_LEFT,
    BUTTON_TOP,
    BUTTON_WIDTH,
)
from rllib_minestudio.env.voxel.world.blocks import BLOCK_ID
from rllib_minestudio.foundation.options import option

_SIGHT, _FAR = 128.0, 12.0
"""Distance within which animals are known, and beyond which the player runs straight, in blocks."""
_HERDS = 16
"""Chunks along each axis within which herds are looked for."""
_REACH = 2.4
"""Distance from the eyes from which an animal can be used, in blocks."""
_AIMED = 4.0
"""Degrees off an animal's middle at which the crosshair is on it."""
_CHASE_TICKS, _TRIES = 200, 12
_MEAL_TICKS, _RISING_TICKS = 60, 3
_PUMPKIN = "carved_pumpkin"


def take_in_hand(player: OmniscientBody, item: str) -> Skill:
    """Take an item into the hand, from anywhere in the inventory."""
    if not (yield from Stations(player).have_in_hotbar((item,))):
        return False
    return (yield from hold_one_of(player, (item,)))


def used(player: OmniscientBody, item: str) -> int:
    """Return how often an item has been used, by the game's count."""
    return int(player.info["use_item"].get(item, 0))


def _cell(point: Point) -> Cell:
    return math.floor(point[0]), math.floor(point[1]), math.floor(point[2])


@dataclass(frozen=True)
class PutDown(SolutionFamily):
    """Puts a block down nearby."""

    item: str = option(None, "Which block.", check=check_item)

    def play(self, player: OmniscientBody) -> Skill:
        """Find room for it and place it."""
        if not (yield from Stations(player).have_in_hotbar((self.item,))):
            return False
        return (yield from place(player, self.item))


@dataclass(frozen=True)
class UseOnBlock(SolutionFamily):
    """Goes to the nearest block of a kind, and uses an item on it."""

    item: str = option(None, "What is used.", check=check_item)
    block: str = option(None, "On what.", check=check_block)
    count: int = option(1, "How many such blocks.", least=1)

    def play(self, player: OmniscientBody) -> Skill:
        """Use it on one block after the other."""
        for _ in range(self.count):
            if not (yield from self._use_once(player)):
                return False
        return True

    def _use_once(self, player: OmniscientBody) -> Skill:
        found = player.memory.find((self.block,))
        if not found or not (yield from take_in_hand(player, self.item)):
            return False
        cell = min(found, key=lambda cell: math.dist(player.eye, middle(cell)))
        if not player.sees(cell):
            yield from walk(player, cell, can_mine_from(player, cell))
        before = used(player, self.item)
        yield from player.look_at(player.visible_point(cell))
        for _ in range(_TRIES):
            yield {"use": 1}
            yield {}
            if used(player, self.item) > before:
                return True
        return False


@dataclass(frozen=True)
class Sleep(SolutionFamily):
    """Sleeps in a bed nearby, or in one that the player has."""

    def play(self, player: OmniscientBody) -> Skill:
        """Try the beds there are, then put one's own down."""
        beds = [name for name in BLOCK_ID if name.endswith("_bed")]
        if (yield from self._try(player, player.memory.find(beds))):
            return True
        own = next((name for name in beds if player.counts()[name]), None)
        if own is None or not (yield from PutDown(own).play(player)):
            return False
        return (yield from self._try(player, player.memory.find((own,))))

    @staticmethod
    def _try(player: OmniscientBody, halves: list[Cell]) -> Skill:
        """Use beds, the nearest first, until the player sleeps."""
        before = player.info["custom"].get("sleep_in_bed", 0)
        for cell in sorted(halves, key=lambda cell: math.dist(player.eye, middle(cell))):
            if not player.sees(cell):
                yield from walk(player, cell, can_mine_from(player, cell))
            yield from player.look_at(player.visible_point(cell))
            yield {"use": 1}
            yield {}
            if player.info["custom"].get("sleep_in_bed", 0) > before:
                return True
        return False


@dataclass(frozen=True)
class SetFire(SolutionFamily):
    """Sets the ground nearby on fire."""

    item: str = option(None, "With what.", check=check_item)
    count: int = option(1, "How many fires.", least=1)

    def play(self, player: OmniscientBody) -> Skill:
        """Light one fire after the other."""
        enough = used(player, self.item) + self.count
        if not (yield from take_in_hand(player, self.item)):
            return False
        places = sorted(places_for(player), key=lambda place: -math.dist(place[0], player.cell))
        for cell, aim in places:
            if used(player, self.item) >= enough:
                break
            if player.memory.is_air(cell):
                yield from player.look_at(aim)
                yield from player.brush_aside()
                yield {"use": 1}
                yield from player.wait(2)
        return used(player, self.item) >= enough


@dataclass(frozen=True)
class Consume(SolutionFamily):
    """Eats or drinks something."""

    item: str = option(None, "What.", check=check_item)

    def play(self, player: OmniscientBody) -> Skill:
        """Hold the use key until it is gone."""
        if not (yield from take_in_hand(player, self.item)):
            return False
        before = used(player, self.item)
        for _ in range(_MEAL_TICKS):
            yield {"use": 1, "camera": (-30.0 - player.pitch, 0.0)}
            if used(player, self.item) > before:
                return True
        return False


@dataclass(frozen=True)
class RaiseGolem(SolutionFamily):
    """Stacks two blocks, the lower one sunk into the ground, and a pumpkin on top."""

    item: str = option(None, "What it is made of.", check=check_item)
    count: int = option(1, "How many golems.", least=1)

    def play(self, player: OmniscientBody) -> Skill:
        """Build one after the other, each at the next place that fits."""
        raised = 0
        for foot in self._places(player):
            if raised == self.count:
                break
            if (yield from self._raise(player, foot)):
                raised += 1
                yield from player.wait(_RISING_TICKS)
        return raised == self.count

    def _raise(self, player: OmniscientBody, foot: Cell) -> Skill:
        x, y, z = foot
        around = len(player.survey.mobs_near(foot, 2))
        if not (yield from mine(player, foot)):
            return False
        for cell in (foot, (x, y + 1, z)):
            if not (yield from put_at(player, cell, self.item)):
                return False
        yield from put_at(player, (x, y + 2, z), _PUMPKIN)
        return len(player.survey.mobs_near(foot, 2)) > around

    @staticmethod
    def _places(player: OmniscientBody) -> Iterator[Cell]:
        """Yield blocks of the ground within reach, with room above them."""
        x, y, z = player.cell
        for dx, dz in sorted(
            product(range(-3, 4), repeat=2), key=lambda step: abs(step[0] + step[1])
        ):
            foot = x + dx, y - 1, z + dz
            room = [(foot[0], y + up, foot[2]) for up in range(3)]
            is_apart, has_room = (
                max(abs(dx), abs(dz)) >= 2,
                not any(map(player.memory.is_solid, room)),
            )
            if is_apart and has_room and player.memory.is_solid(foot) and player.sees(foot):
                yield foot


@dataclass(frozen=True)
class UseOnAnimal(SolutionFamily):
    """Runs up to animals, uses an item on them, and collects what comes of it."""

    item: str = option(None, "What is used.", check=check_item)
    animal: tuple[str, ...] = option(None, "Kinds of animals.", check=SOME_PREY)
    count: int = option(1, "How often.", least=1)
    collect: tuple[str, ...] = option((), "Items to pick up then.", check=ANY_ITEMS)

    def play(self, player: OmniscientBody) -> Skill:
        """Use the item on the nearest animal until it has had an effect often enough."""
        if not (yield from take_in_hand(player, self.item)):
            return False
        enough = used(player, self.item) + self.count
        for _ in range(_TRIES):
            yield from self._use_on_nearest(player)
            if used(player, self.item) >= enough:
                yield from player.wait(2)
                if any(drop.name in self.collect for drop in player.drops):
                    yield from collect(player, self.collect, player.cell)
                return not self.collect or bool(player.count_of(self.collect))
        return False

    def _use_on_nearest(self, player: OmniscientBody) -> Skill:
        """Chase the nearest animal until the item has been used on it, or it cannot be reached."""
        before = used(player, self.item)
        for tick in range(_CHASE_TICKS):
            goal = _nearest(player, self.animal)
            if goal is None:
                return (yield from _look_elsewhere(player, self.animal))
            if player.distance_to(_cell(goal)) > _FAR:
                yield from run_to(player, (goal[0], goal[2]), leaps=True)
                continue
            pitch, yaw = player.error_to(goal)
            if math.dist(player.eye, goal) < _REACH and math.hypot(pitch, yaw) < _AIMED:
                yield {"camera": (pitch, yaw), "use": tick % 2}
                if used(player, self.item) > before:
                    return True
                continue
            if math.dist(player.eye, goal) >= _REACH and tick % 40 == 20:
                yield from _walk_to(player, goal)
            yield {
                "camera": (pitch, yaw),
                "forward": int(math.dist(player.eye, goal) >= _REACH - 0.4 and abs(yaw) < 30.0),
            }
        return False


def _nearest(player: OmniscientBody, animals: Collection[str]) -> Point | None:
    """Return the middle of the nearest of some kinds of animals, or None."""
    middles = [
        (mob["x"], mob["y"] + BODIES[mob["name"]].height / 2, mob["z"])
        for mob in player.engine.mobs_near(_SIGHT)
        if mob["name"] in animals
    ]
    return min(middles, key=lambda middle: math.dist(player.eye, middle), default=None)


def _look_elsewhere(player: OmniscientBody, animals: Collection[str]) -> Skill:
    """Run to the nearest herd on land that is not loaded yet."""
    goal = player.survey.nearest_herd(animals, _HERDS)
    return goal is not None and (yield from run_to(player, goal, leaps=True))


def _walk_to(player: OmniscientBody, goal: Point) -> Skill:
    """Go round obstacles to a place with a free line to an animal."""
    return (yield from run_by_path(player, _cell(goal), _beside(player, goal)))


def _beside(player: OmniscientBody, goal: Point) -> Callable[[Cell], bool]:
    """Return whether a cell is within reach of an animal, with a free line to it."""

    def reached(cell: Cell) -> bool:
        eye = cell[0] + 0.5, cell[1] + EYE_HEIGHT, cell[2] + 0.5
        near = math.dist(eye, goal) < _REACH
        return near and not player.memory.obstacles(eye, goal)

    return reached


_DRAW_TICKS = 25


@dataclass(frozen=True)
class Shoot(SolutionFamily):
    """Draws a bow and lets go."""

    def play(self, player: OmniscientBody) -> Skill:
        """Shoot upwards, in whatever direction the player looks."""
        if not (yield from take_in_hand(player, "bow")):
            return False
        before = used(player, "bow")
        for _ in range(_DRAW_TICKS):
            yield {"use": 1, "camera": (-30.0 - player.pitch, 0.0)}
        yield {}
        return used(player, "bow") > before


_HUNTED = ("cow", "pig", "sheep", "chicken")
_HUNT_TICKS, _MOST_ROUNDS = 50, 400
_TABLE, _LAPIS = "enchanting_table", "lapis_lazuli"


@dataclass(frozen=True)
class Enchant(SolutionFamily):
    """Kills animals for the experience that an enchantment needs, and takes the cheapest offer."""

    item: str = option(None, "What is enchanted, and the weapon.", check=check_item)

    def play(self, player: OmniscientBody) -> Skill:
        """Gain levels, go back to where the table is, and use it."""
        if not (yield from take_in_hand(player, self.item)):
            return False
        stack = ItemStack(ITEM_ID[self.item], 1, 0)
        made = offers(player.engine.player.enchanting_seed, stack, shelves=0)
        level, choice = min(
            (max(offer.level, number + 1), number)
            for number, offer in enumerate(made)
            if offer.level
        )
        for _ in range(_MOST_ROUNDS):
            if player.engine.player.level >= level:
                break
            yield from self._kill_one(player)
        x, _, z = player.relative((0, 0, 0))
        yield from run_to(player, (x + 0.5, z + 0.5), leaps=True)
        for _ in range(_TRIES):
            if (yield from self._take(player, choice)):
                return True
        return False

    def _kill_one(self, player: OmniscientBody) -> Skill:
        """Run to the nearest animal and hit it for a while."""
        goal = _nearest(player, _HUNTED)
        if goal is None:
            return (yield from _look_elsewhere(player, _HUNTED))
        if player.distance_to(_cell(goal)) > _FAR:
            yield from run_to(player, (goal[0], goal[2]), leaps=True)
            return False
        if not (yield from _walk_to(player, goal)):
            yield from walk(player, _cell(goal), _beside(player, goal))
        yield from hold_one_of(player, (self.item,))
        hunter, before = ScriptedHunter(_HUNTED), player.engine.player.experience
        for _ in range(_HUNT_TICKS):
            yield hunter.keys(player.info["player_pos"], player.engine.mobs_near(_SIGHT))
            if player.engine.player.experience > before:
                return True
        return False

    def _take(self, player: OmniscientBody, choice: int) -> Skill:
        """Put item and lapis lazuli on the table, and click on an offer."""
        done = player.info["custom"].get("enchant_item", 0)
        stations = Stations(player)
        screen = yield from stations.open(_TABLE)
        if screen is None:
            return False
        for name in (self.item, _LAPIS):
            if (slot := player.slot_of(name)) is not None:
                yield from screen.shift_click(screen.of_inventory(slot))
        layout = LAYOUTS[_TABLE]
        yield from screen.click_at(
            layout.left + BUTTON_LEFT + BUTTON_WIDTH / 2,
            layout.top + BUTTON_TOP + (choice + 0.5) * BUTTON_HEIGHT,
        )
        yield from stations.leave()
        return player.info["custom"].get("enchant_item", 0) > done
