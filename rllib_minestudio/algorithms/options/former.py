"""Options that there were: they are refused by name, with what has taken their place.

`training`, `update_from_dict`, experiment files and configs that an earlier version pickled all
look here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from rllib_minestudio.option_checks import shown


class FormerOption(NamedTuple):
    """An option that there was.

    Attributes:
        value: The value by which an earlier version did what is now always done.
        advice: What has taken its place, as it stands behind "is no longer an option: ".
    """

    value: Any
    advice: str


FORMER_OPTIONS: dict[str, FormerOption] = {
    "reuse_stored_values": FormerOption(
        False,
        "values of stale fragments are always computed anew; replay_buffer.max_staleness: 0 keeps "
        "fragments from becoming stale",
    ),
}
"""Name -> what became of it."""


def former_option_problems(options: Mapping[str, Any], *, listed: bool = False) -> list[str]:
    """Say which options there no longer are, one sentence each.

    Args:
        options: Value by name.
        listed: Whether this is everything that a config holds, rather than what a user wrote:
            then an option that asks for what is now always done passes.
    """
    return [
        f"{name} is {shown(options[name])}, but is no longer an option: {former.advice}."
        for name, former in FORMER_OPTIONS.items()
        if name in options and not (listed and options[name] == former.value)
    ]
