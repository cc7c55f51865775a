"""The names of the scripted agents, for `rllib play` and `rllib record`."""

from __future__ import annotations

import textwrap

HUNTER, PERFECT_HUNTER, RANDOM = "hunter", "perfect-hunter", "random"
TOOLMAKER, PRACTISED_TOOLMAKER = "toolmaker", "practised-toolmaker"
TOOLMAKERS = (TOOLMAKER, PRACTISED_TOOLMAKER)

AGENTS = {
    HUNTER: "hunts like a person: sees what the frame shows, reacts late, turns smoothly, misses, "
    "pauses",
    PERFECT_HUNTER: "knows where every animal is and turns at once",
    TOOLMAKER: "works its way up to an iron pickaxe through the game's screens; sees what the "
    "frame shows",
    PRACTISED_TOOLMAKER: "the toolmaker with a quicker hand, which often goes astray and is put "
    "right: for clones to learn from",
    RANDOM: "draws every action uniformly",
}
"""Name -> what the agent does. `env/agents/scripted.py` builds them."""


def agents_help() -> str:
    """Return a list of the agents and what they do, for a command's help."""
    column = max(map(len, AGENTS)) + 5
    lines = [
        textwrap.fill(f"{f'  {name}':{column}}{sentence}", 100, subsequent_indent=" " * column)
        for name, sentence in AGENTS.items()
    ]
    return "\n".join(lines)
