"""docs/callback_options.md: every callback of the environment and its arguments."""

from __future__ import annotations

from rllib_minestudio.env.callbacks import CALLBACKS
from tools.reference.tables import prose, signature_table

_INTRODUCTION = """\
# Callbacks and their arguments

What can be listed in `env_config.callbacks`. [callbacks.md](callbacks.md) explains how callbacks
work and how to write your own.

This page is generated from the code: `python -m tools.reference docs`.
"""


def page() -> str:
    """Return docs/callback_options.md."""
    parts = [_INTRODUCTION]
    for name, callback in sorted(CALLBACKS.items()):
        parts += [f"## {name}\n", f"{prose(callback.__doc__)}\n"]
        constructor = callback.__init__  # type: ignore[misc]
        parts.append(signature_table(constructor, name) or "Takes no arguments.\n")
    return "\n".join(parts)
