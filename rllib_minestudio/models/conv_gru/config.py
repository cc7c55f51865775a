"""Sizes of the ConvGRU network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.option_checks import broken_rule, is_integer
from rllib_minestudio.option_fields import Check, group_problems, option

_MOST_CHANNELS, _MOST_PIXELS = 4096, 64


def _triple_check(most: int) -> Check:
    """Return what judges three positive integers, one per convolution."""

    def problems(name: str, triple: Any) -> list[str]:
        is_triple = isinstance(triple, list | tuple) and len(triple) == 3
        if is_triple and all(is_integer(n) and 1 <= n <= most for n in triple):
            return []
        return [broken_rule(name, triple, f"must be three integers from 1 to {most}")]

    return problems


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
    channels: tuple[int, int, int] = option(
        (32, 64, 64),
        "The three convolutions of the image have this many channels.",
        check=_triple_check(_MOST_CHANNELS),
    )
    kernels: tuple[int, int, int] = option(
        (8, 4, 3),
        "The convolutions look at squares of so many pixels each way.",
        check=_triple_check(_MOST_PIXELS),
    )
    strides: tuple[int, int, int] = option(
        (4, 2, 1),
        "The convolutions' squares lie so many pixels apart. Smaller strides tell more exactly "
        "where small things are, such as the cursor of a screen, and take longer.",
        check=_triple_check(_MOST_PIXELS),
    )
    frequencies: int = option(
        0,
        "Numbers besides the image are also told as sines and cosines of so many frequencies, each "
        "twice the one before. For places from -1 to 1, such as that of the callback `Cursor`: 6 "
        "tell apart what is a sixty-fourth apart.",
        least=0,
        most=16,
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
        given: dict[str, Any] = {}
        for name in (f.name for f in fields(cls) if f.name in options):
            value = options[name]
            given[name] = tuple(value) if isinstance(value, list) else value
        return cls(**given)

    @property
    def smallest_side(self) -> int:
        """Pixels that a frame has each way at least: less leaves the last convolution nothing."""
        side = 1
        for kernel, stride in zip(reversed(self.kernels), reversed(self.strides), strict=True):
            side = (side - 1) * stride + kernel
        return side

    def side_left(self, side: int) -> int:
        """Pixels that the last convolution leaves of a frame's `side`, each way."""
        for kernel, stride in zip(self.kernels, self.strides, strict=True):
            side = (side - kernel) // stride + 1
        return side
