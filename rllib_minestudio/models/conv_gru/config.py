"""Sizes of the ConvGRU network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.option_checks import broken_rule, is_integer
from rllib_minestudio.option_fields import group_problems, option

_MOST_CHANNELS = 4096


def _channel_problems(name: str, channels: Any) -> list[str]:
    """Judge the channels of the three convolutions."""
    is_triple = isinstance(channels, list | tuple) and len(channels) == 3
    if is_triple and all(is_integer(c) and 1 <= c <= _MOST_CHANNELS for c in channels):
        return []
    return [broken_rule(name, channels, f"must be three integers from 1 to {_MOST_CHANNELS}")]


@dataclass(frozen=True, kw_only=True)
class ConvGRUConfig:
    """Everything but the spaces that decides the shape of a ConvGRU network."""

    hidden_size: int = option(
        128,
        "The GRU, and the latent that the heads read, is this wide. A wider one takes larger steps "
        "at the same learning rate.",
        least=1,
        most=16384,
    )
    channels: tuple[int, ...] = option(
        (32, 64, 64),
        "The three convolutions of the image have this many channels.",
        check=_channel_problems,
    )
    text_size: int = option(
        16, "Each byte of a text is embedded in this many numbers.", least=1, most=4096
    )
    temperature: float = option(
        1.0, "The action heads' logits are divided by this.", least=1e-300, most=1e6
    )

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> ConvGRUConfig:
        """Check options as they come from a user or a YAML file, and fill in the defaults.

        Raises:
            InvalidOptionsError: If anything is wrong; lists all problems.
        """
        problems = group_problems(cls, options, "model")
        if problems:
            raise InvalidOptionsError(problems)
        given = {f.name: options[f.name] for f in fields(cls) if f.name in options}
        if "channels" in given:
            given["channels"] = tuple(given["channels"])
        return cls(**given)
