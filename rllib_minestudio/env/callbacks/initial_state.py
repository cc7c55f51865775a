"""InitInventory, SummonMobs, Commands: what an episode begins with, unless that is a saved game."""

from __future__ import annotations

import logging
import operator
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rllib_minestudio.env.backends.minecraft.items import STACK_SIZES
from rllib_minestudio.env.backends.protocol import RawObs
from rllib_minestudio.env.callbacks.base import Info, MinecraftCallback, Obs, Sim
from rllib_minestudio.env.voxel.data import NAMESPACE
from rllib_minestudio.errors import did_you_mean
from rllib_minestudio.foundation.options import Problems, is_integer, is_list, is_number

_CARRIED_SLOTS = range(36)
"""Hotbar and inventory: where random slots are drawn from."""
_WORN = {36: "feet", 37: "legs", 38: "chest", 39: "head", 40: "offhand"}
"""The other slots, by their names in MineStudio's `equipped_items`."""
_LAST_SLOT = 40

_DISTRACTIONS: dict[str, Sequence[int]] = {
    "zero": (0,),
    "one": (1,),
    "easy": range(3, 7),
    "middle": range(7, 16),
    "hard": range(16, 35),
    "normal": range(35),
}
"""Possible numbers of distracting items at each level, as in MineStudio."""

_SINGLE = 0.7
"""How often a "random" quantity is simply 1."""

_INVENTORY_FIELDS = ("slot", "type", "quantity", "metadata")

_logger = logging.getLogger(__name__)


class InitInventoryCallback(MinecraftCallback):
    """Puts items into slots after each reset, by `/replaceitem`.

    MineStudio's callback differs:

    - It addresses slot 0 as the main hand, which is whichever slot of the hotbar is selected.
    - It looks for worn items among the carried ones, so that it always waits for armour.
    - It draws quantities of 0, which the game refuses, so that the slot stays empty.
    - It takes a quantity that it cannot read for any, and one that no stack can have for 1. Here
      both are refused, as is an unknown `distraction_level`, which there means none.
    - It sends `metadata` in the form of Minecraft 1.12, for which 1.16 refuses the command.

    Items that the game does not put into their slots are named in the log.
    """

    def __init__(
        self,
        init_inventory: Sequence[Mapping[str, Any]],
        distraction_level: Sequence[int] | str = (0,),
    ) -> None:
        """Check and keep the arguments.

        Args:
            init_inventory: One mapping per item: `slot`, 0 to 40 (0-8 hotbar, 9-35 inventory,
                36-39 feet to head, 40 off hand) or "random" for a free one of 0 to 35; `type`,
                the item's name; `quantity`, a number, or conditions such as ">=2,<12", which draw
                one of the quantities that meet them all, or "random", which is 1 in 70 % of the
                episodes, else anything up to a full stack; optionally `metadata`, NBT data such as
                "{Damage:5}". Example: `[{"slot": 0, "type": "oak_planks", "quantity": ">2"}]`.
            distraction_level: How many random items to put into other free slots: a list of
                numbers, from which one is drawn per episode, or "zero", "one", "easy" (3-6),
                "middle" (7-15), "hard" (16-34) or "normal" (0-34). The items are drawn from those
                that the engine has.

        Raises:
            InvalidOptionsError: If an entry is incomplete or impossible; lists all problems.
        """
        problems = Problems()
        if not is_list(init_inventory):
            problems.add("init_inventory", init_inventory, "must be a list of mappings")
            init_inventory = []
        for i, entry in enumerate(init_inventory):
            _check_entry(problems, f"init_inventory[{i}]", entry)
        if not problems:
            _check_slots(problems, [entry["slot"] for entry in init_inventory])
        _check_level(problems, distraction_level)
        problems.raise_if_any()
        self.init_inventory = [dict(entry) for entry in init_inventory]
        self.distraction_level = distraction_level
        self._numbers = list(
            _DISTRACTIONS[distraction_level]
            if isinstance(distraction_level, str)
            else distraction_level
        )
        self._complaints: set[str] = set()

    def after_reset(self, sim: Sim, obs: Obs, info: Info) -> tuple[Obs, Info]:
        """Fill the slots, one tick each, and wait until they are filled."""
        stacks = {} if sim.is_restored else self._draw(sim)
        if not stacks:
            return obs, info
        for slot, stack in stacks.items():
            raw_obs, _, _, raw_info = sim.env.execute_cmd(_command(sim.np_random, slot, stack))
        for _ in range(2 * len(stacks)):
            raw_obs, _, _, raw_info = sim.env.step(sim.env.noop_action())
            missing = [slot for slot, stack in stacks.items() if not _holds(raw_obs, slot, stack)]
            if not missing:
                break
        for slot in missing:
            self._complain(slot, stacks[slot]["type"])
        return sim._wrap_obs_info(raw_obs, raw_info)

    def _draw(self, sim: Sim) -> dict[int, Mapping[str, Any]]:
        """Assign items to slots: fixed slots first, then random ones, then distractions."""
        stacks: dict[int, Mapping[str, Any]] = {
            int(entry["slot"]): entry for entry in self.init_inventory if entry["slot"] != RANDOM
        }
        free = [slot for slot in _CARRIED_SLOTS if slot not in stacks]

        def any_slot() -> int:
            return free.pop(sim.np_random.integers(len(free)))

        for entry in self.init_inventory:
            if entry["slot"] == RANDOM:
                stacks[any_slot()] = entry
        number = self._numbers[sim.np_random.integers(len(self._numbers))]
        names = sim.env.item_names()
        for _ in range(min(number, len(free))):
            name = names[sim.np_random.integers(len(names))]
            stacks[any_slot()] = {"type": name, "quantity": RANDOM}
        return stacks

    def _complain(self, slot: int, name: str) -> None:
        if name not in self._complaints:
            self._complaints.add(name)
            _logger.warning("InitInventory: the game has not put %r into slot %d.", name, slot)

    def __repr__(self) -> str:
        return f"InitInventoryCallback({self.init_inventory!r}, {self.distraction_level!r})"


def _command(np_random: np.random.Generator, slot: int, stack: Mapping[str, Any]) -> str:
    """Return the command that fills a slot; draws the quantity."""
    name = stack["type"].removeprefix(NAMESPACE)
    quantity = stack["quantity"]
    if not isinstance(quantity, int):
        allowed = allowed_quantities(quantity, STACK_SIZES[name])
        if quantity == RANDOM and np_random.random() < _SINGLE:
            quantity = 1
        else:
            quantity = allowed[np_random.integers(len(allowed))]
    item = f"{NAMESPACE}{name}{stack.get('metadata', '')}"
    return f"/replaceitem entity @p {_place(slot)} {item} {quantity}"


def _place(slot: int) -> str:
    """Return a slot's name in commands."""
    if slot <= 8:
        return f"hotbar.{slot}"
    if slot in _CARRIED_SLOTS:
        return f"inventory.{slot - 9}"
    return f"weapon.{_WORN[slot]}" if slot == _LAST_SLOT else f"armor.{_WORN[slot]}"


def _holds(raw_obs: RawObs, slot: int, stack: Mapping[str, Any]) -> bool:
    """Whether the game reports the item that a slot should have."""
    places, key = (
        (raw_obs["equipped_items"], _WORN[slot]) if slot in _WORN else (raw_obs["inventory"], slot)
    )
    return places.get(key, {}).get("type") == stack["type"].removeprefix(NAMESPACE)


def _check_entry(problems: Problems, where: str, entry: Any) -> None:
    if not isinstance(entry, Mapping):
        problems.add(where, entry, f"must be a mapping with {', '.join(_INVENTORY_FIELDS[:-1])}")
        return
    problems.known(f"field of {where}", entry, _INVENTORY_FIELDS)
    slot = entry.get("slot")
    if slot != RANDOM and _slot_number(slot) is None:
        problems.add(f"{where}.slot", slot, f"must be an integer from 0 to {_LAST_SLOT}, or random")
    name = str(entry.get("type")).removeprefix(NAMESPACE)
    if name not in STACK_SIZES:
        hint = did_you_mean(name, STACK_SIZES)
        problems.messages.append(f"{where}.type: Minecraft 1.16 has no item {name!r}.{hint}")
    elif not allowed_quantities(entry.get("quantity"), STACK_SIZES[name]):
        rule = QUANTITY_RULE.format(name=name, size=STACK_SIZES[name])
        problems.add(f"{where}.quantity", entry.get("quantity"), rule)
    data = entry.get("metadata", "{}")
    if not isinstance(data, str) or not (data.startswith("{") and data.endswith("}")):
        problems.add(f"{where}.metadata", data, "must be NBT data in braces, such as '{Damage:5}'")
    elif len(data.splitlines()) != 1:
        problems.add(f"{where}.metadata", data, "must be one line")


def _slot_number(slot: Any) -> int | None:
    """Return a slot's number, which may be given as text, as in MineStudio; None if invalid."""
    if isinstance(slot, str) and slot.isdecimal() and len(slot) <= 2:
        slot = int(slot)
    return slot if is_integer(slot) and 0 <= slot <= _LAST_SLOT else None


def _check_slots(problems: Problems, slots: Sequence[Any]) -> None:
    """Note slots that are filled twice, and random ones for which there is no room."""
    fixed = [int(slot) for slot in slots if slot != RANDOM]
    for slot in sorted({slot for slot in fixed if fixed.count(slot) > 1}):
        problems.messages.append(f"init_inventory fills slot {slot} twice: leave one out.")
    room = len(set(_CARRIED_SLOTS) - set(fixed))
    if len(slots) - len(fixed) > room:
        problems.messages.append(
            f"init_inventory has {len(slots) - len(fixed)} random slots, but only {room} of the "
            f"slots 0 to {_CARRIED_SLOTS[-1]} are free."
        )


def _check_level(problems: Problems, level: Any) -> None:
    if isinstance(level, str):
        problems.choice("distraction_level", level, _DISTRACTIONS)
        return
    most = len(_CARRIED_SLOTS)
    is_numbers = is_list(level) and level and all(map(is_integer, level))
    if not is_numbers or not all(0 <= number <= most for number in level):
        rule = (
            f"must be one of {', '.join(_DISTRACTIONS)}, or a non-empty list of integers from 0 to "
            f"{most}"
        )
        problems.add("distraction_level", level, rule)


# ----------------------------- quantities of an item, in the notation of MineStudio's InitInventory

RANDOM = "random"
_LARGEST = 64
"""The largest count that commands take, whatever the item."""

_COMPARISONS = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
}
_CONDITION = re.compile(r"(<=|>=|==|<|>)\s*(\d{1,3})")

QUANTITY_RULE = (
    f"must be an integer from 1 to {_LARGEST}, 'random', or conditions such as '>=2,<12' that 1 to "
    "{size} {name} can meet"
)
"""The rule of `allowed_quantities`, for messages; formatted with an item and its stack size."""


def allowed_quantities(quantity: Any, stack_size: int) -> list[int]:
    """Return the quantities that a number, conditions or "random" allow.

    Args:
        quantity: A number, which may exceed a full stack; "random", 1 to a full stack; or
            conditions separated by commas, all of which must be met: `<`, `<=`, `>`, `>=` or `==`
            and a number.
        stack_size: How many make a full stack.

    Returns:
        The quantities in ascending order; empty if `quantity` is invalid or cannot be met.
    """
    if is_integer(quantity):
        return [quantity] if 1 <= quantity <= _LARGEST else []
    if not isinstance(quantity, str):
        return []
    allowed = list(range(1, stack_size + 1))
    for part in () if quantity == RANDOM else quantity.split(","):
        condition = _CONDITION.fullmatch(part.strip())
        if condition is None:
            return []
        compare, number = _COMPARISONS[condition[1]], int(condition[2])
        allowed = [count for count in allowed if compare(count, number)]
    return allowed


# --------------------------------------------------------------------------------------- SummonMobs
# Animals and monsters around the player at the start of an episode.

_MOST_MOBS = 1000
"""Of one kind; each takes a tick to summon."""

_FARTHEST_MOB = 10_000
"""Blocks from the player; farther ones would never be met."""

_SUMMON_FIELDS = ("name", "mob_name", "number", "range_x", "range_z")


class SummonMobsCallback(MinecraftCallback):
    """Summons mobs at uniformly random places near the player, three blocks up."""

    def __init__(self, mobs: Sequence[Mapping[str, Any]]) -> None:
        """Check and keep the list of mobs.

        Args:
            mobs: One mapping per kind: `name` (or `mob_name`), `number`, and `range_x` and
                `range_z`, each [lowest, highest] offset from the player in blocks. Example:
                `[{"name": "cow", "number": 10, "range_x": [-5, 5], "range_z": [-5, 5]}]`.

        Raises:
            InvalidOptionsError: If an entry is incomplete or of a wrong type; lists all problems.
        """
        problems = Problems()
        if not is_list(mobs):
            problems.add("mobs", mobs, "must be a list of mappings")
            mobs = []
        for i, mob in enumerate(mobs):
            _check_mob(problems, f"mobs[{i}]", mob)
        problems.raise_if_any()
        self.mobs = [dict(mob) for mob in mobs]
        self.summons_mobs = bool(self.mobs)

    def after_reset(self, sim: Sim, obs: Obs, info: Info) -> tuple[Obs, Info]:
        """Summon all mobs, one game tick each."""
        for mob in () if sim.is_restored else self.mobs:
            name = (mob.get("name") or mob["mob_name"]).removeprefix(NAMESPACE)
            for _ in range(mob["number"]):
                x = sim.np_random.uniform(*mob["range_x"])
                z = sim.np_random.uniform(*mob["range_z"])
                # Fixed-point, because the game's command parser knows no exponents.
                command = (
                    "/execute as @p at @p run summon "
                    f"minecraft:{name} ~{x:.6f} ~3 ~{z:.6f} {{Age:0}}"
                )
                raw_obs, _, _, raw_info = sim.env.execute_cmd(command)
                obs, info = sim._wrap_obs_info(raw_obs, raw_info)
        return obs, info

    def __repr__(self) -> str:
        return f"SummonMobsCallback({self.mobs!r})"


def _check_mob(problems: Problems, where: str, mob: Any) -> None:
    if not isinstance(mob, Mapping):
        problems.add(where, mob, f"must be a mapping with {', '.join(_SUMMON_FIELDS)}")
        return
    problems.known(f"field of {where}", mob, _SUMMON_FIELDS)
    name = mob.get("name") or mob.get("mob_name")
    if not isinstance(name, str) or not name.removeprefix(NAMESPACE).isidentifier():
        problems.add(f"{where}.name", name, "must be the name of a mob, such as 'cow'")
    number: Any = mob.get("number")
    if not is_integer(number) or not 0 <= number <= _MOST_MOBS:
        problems.add(f"{where}.number", number, f"must be an integer from 0 to {_MOST_MOBS}")
    for field in ("range_x", "range_z"):
        bounds: Any = mob.get(field)
        is_pair = is_list(bounds) and len(bounds) == 2 and all(map(is_number, bounds))
        if not is_pair or not -_FARTHEST_MOB <= bounds[0] <= bounds[1] <= _FARTHEST_MOB:
            rule = f"must be two numbers, lowest first, from {-_FARTHEST_MOB} to {_FARTHEST_MOB}"
            problems.add(f"{where}.{field}", bounds, rule)


# ----------------------------------------------------------------------------------------- commands
# Chat commands at the start of every episode.

_SUMMON = re.compile(r"(^|/|\s)summon\s")
_LONGEST_COMMAND = 32500
"""Characters, as in Minecraft's command blocks."""


def _is_line(command: Any) -> bool:
    """Whether the game's protocol can carry a command."""
    is_text = (
        isinstance(command, str) and len(command.strip()) > 0 and len(command) <= _LONGEST_COMMAND
    )
    return is_text and len(command.splitlines()) == 1


class CommandsCallback(MinecraftCallback):
    """Executes chat commands, in order, after each reset."""

    def __init__(self, commands: Sequence[str]) -> None:
        """Check and keep the commands.

        Args:
            commands: For example `["/give @p minecraft:iron_sword 1"]`; may be empty.

        Raises:
            InvalidOptionsError: If it is not a list of single-line strings; lists all problems.
        """
        problems = Problems()
        if not is_list(commands):
            problems.add("commands", commands, "must be a list of strings")
            commands = []
        for i, command in enumerate(commands):
            # The game's wire protocol is line based: a newline would start another message.
            if not _is_line(command):
                rule = f"must be one non-empty line of at most {_LONGEST_COMMAND} characters"
                problems.add(f"commands[{i}]", command, rule)
        problems.raise_if_any()
        self.commands = list(commands)
        self.summons_mobs = any(_SUMMON.search(command) for command in commands)

    def after_reset(self, sim: Sim, obs: Obs, info: Info) -> tuple[Obs, Info]:
        """Execute the commands, one game tick each."""
        for command in () if sim.is_restored else self.commands:
            raw_obs, _, _, raw_info = sim.env.execute_cmd(command)
            obs, info = sim._wrap_obs_info(raw_obs, raw_info)
        return obs, info

    def __repr__(self) -> str:
        return f"CommandsCallback({self.commands!r})"
