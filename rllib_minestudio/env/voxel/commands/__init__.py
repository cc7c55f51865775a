"""Chat commands of the embedded engine, modelled on Minecraft Java 1.16."""

from __future__ import annotations

from rllib_minestudio.env.voxel.commands import entity_commands, world_commands
from rllib_minestudio.env.voxel.commands.parsing import (
    Command,
    CommandError,
    CommandResult,
    Effort,
    Source,
    need,
    read_position,
    select,
    split_words,
)
from rllib_minestudio.env.voxel.game import screen_handling
from rllib_minestudio.env.voxel.game.game_state import GameState
from rllib_minestudio.errors import did_you_mean

_COMMAND_EFFORT = 16
"""Cost of running a command, counted against `LARGEST_EFFORT`."""
_LONGEST_MESSAGE = 300

__all__ = ["COMMANDS", "CommandResult", "execute"]


def _run(source: Source, words: list[str]) -> CommandResult:
    if not words:
        raise CommandError("Unknown or incomplete command")
    source.effort.spend(_COMMAND_EFFORT)
    command = COMMANDS.get(words[0])
    if command is None:
        raise CommandError(f"Unknown command '{words[0]}'.{did_you_mean(words[0], COMMANDS)}")
    return command(source, words[1:])


def _execute(source: Source, arguments: list[str]) -> CommandResult:
    """`/execute (as|at|positioned) ... run <command>`, once for each selected entity."""
    need(arguments, 2, "/execute (as|at|positioned) ... run <command>")
    word, rest = arguments[0], arguments[1:]
    if word == "run":
        return _run(source, rest)
    if word == "positioned":
        return _execute(source._replace(position=read_position(rest, source)), rest[3:])
    if word not in ("as", "at"):
        raise CommandError(f"Incorrect argument for command: '{word}' (as, at, positioned or run)")
    # Last entity first: a branch that removes its entity shifts the rows after it.
    results = [
        _execute(
            source._replace(executor=(target.kind, target.row))
            if word == "as"
            else source._replace(position=target.position),
            rest[1:],
        )
        for target in reversed(select(rest[0], source))
    ]
    return results[-1]


COMMANDS: dict[str, Command] = {
    "give": entity_commands.give,
    "clear": entity_commands.clear,
    "replaceitem": entity_commands.replaceitem,
    "summon": entity_commands.summon,
    "effect": entity_commands.effect,
    "enchant": entity_commands.enchant,
    "kill": entity_commands.kill,
    "tp": entity_commands.tp,
    "teleport": entity_commands.tp,
    "teleportbiome": entity_commands.teleportbiome,
    "locatebiome": entity_commands.locatebiome,
    "setblock": world_commands.setblock,
    "fill": world_commands.fill,
    "time": world_commands.time,
    "weather": world_commands.weather,
    "gamerule": world_commands.gamerule,
    "difficulty": world_commands.difficulty,
    "execute": _execute,
}
"""Commands by name."""


def execute(state: GameState, text: str) -> CommandResult:
    """Execute a chat command as the player.

    Args:
        state: The game.
        text: The command, with or without the leading slash.

    Returns:
        Whether it succeeded, and Minecraft's message; an invalid command never raises.
    """
    x, y, z = state.player.position.tolist()
    source = Source(state, Effort(), ("player", 0), (x, y, z))
    try:
        return _run(source, split_words(text.strip().removeprefix("/")))
    except CommandError as error:
        return CommandResult(False, str(error)[:_LONGEST_MESSAGE])
    except RecursionError:
        return CommandResult(False, "The command is nested too deeply")
    finally:
        screen_handling.settle(state)
