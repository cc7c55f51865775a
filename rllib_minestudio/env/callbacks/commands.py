"""Commands: chat commands at the start of every episode."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rllib_minestudio.env.callbacks.base import Info, MinecraftCallback, Obs, Sim
from rllib_minestudio.option_checks import Problems, is_list

_LONGEST = 32500
"""Characters, as in Minecraft's command blocks."""


def _is_line(command: Any) -> bool:
    """Whether something is a command that the game's protocol can carry."""
    is_text = isinstance(command, str) and len(command.strip()) > 0 and len(command) <= _LONGEST
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
                rule = f"must be one non-empty line of at most {_LONGEST} characters"
                problems.add(f"commands[{i}]", command, rule)
        problems.raise_if_any()
        self.commands = list(commands)

    def after_reset(self, sim: Sim, obs: Obs, info: Info) -> tuple[Obs, Info]:
        """Execute the commands, one game tick each."""
        for command in self.commands:
            raw_obs, _, _, raw_info = sim.env.execute_cmd(command)
            obs, info = sim._wrap_obs_info(raw_obs, raw_info)
        return obs, info

    def __repr__(self) -> str:
        """Show the commands."""
        return f"CommandsCallback({self.commands!r})"
