"""Every callback of the environment and its arguments."""

from __future__ import annotations

from rllib_minestudio.env.callbacks import CALLBACKS
from tools.reference.tables import prose, signature_table

_INTRODUCTION = """\
## The callbacks

What can be listed in `env_config.callbacks`. [Callbacks](callbacks.md) explains how they work and
how to write your own.
"""


def section() -> str:
    """Return the section of the options' page."""
    parts = [_INTRODUCTION]
    for name, callback in sorted(CALLBACKS.items()):
        parts += [f"### {name}\n", f"{prose(callback.__doc__)}\n"]
        constructor = callback.__init__  # type: ignore[misc]
        parts.append(signature_table(constructor, name) or "Takes no arguments.\n")
    return "\n".join(parts)
